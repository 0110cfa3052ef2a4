# syntax=docker/dockerfile:1
FROM python:3.13-slim-bookworm AS build
WORKDIR /src
COPY requirements.lock ./
RUN python -m venv /venv && /venv/bin/pip install --no-cache-dir --require-hashes -r requirements.lock
COPY pyproject.toml README.md ./
COPY bot ./bot
RUN /venv/bin/pip install --no-cache-dir --no-deps hatchling && /venv/bin/pip install --no-cache-dir --no-deps .

FROM python:3.13-slim-bookworm
LABEL org.opencontainers.image.title="gputest-bot" \
      org.opencontainers.image.description="A ChatOps bot for GPU test runs"
COPY --from=build /venv /venv
USER 65532:65532
EXPOSE 8080
HEALTHCHECK --interval=30s --timeout=3s CMD ["/venv/bin/python", "-c", "import urllib.request as u; u.urlopen('http://127.0.0.1:8080/healthz', timeout=2)"]
ENTRYPOINT ["/venv/bin/gputest-bot"]
CMD ["run", "--config", "/etc/gputest/config.yaml"]
