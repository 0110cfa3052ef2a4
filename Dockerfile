# syntax=docker/dockerfile:1
# To pin the base images by digest, where a registry can be asked: docker buildx imagetools inspect python:3.13-slim-bookworm,
# and write python:3.13-slim-bookworm@sha256:… in both lines.
FROM python:3.13-slim-bookworm AS build
WORKDIR /src
COPY requirements.lock ./
RUN python -m venv /venv && /venv/bin/pip install --no-cache-dir --no-compile --require-hashes -r requirements.lock
COPY pyproject.toml README.md ./
COPY bot ./bot
# The root is read-only, so byte code is made here: of what the bot imports, since most of the Kubernetes client is never loaded.
RUN /venv/bin/pip install --no-cache-dir --no-compile --no-deps . && \
    /venv/bin/python -I -c "import bot.app, bot.doctor" && \
    /venv/bin/pip uninstall --yes pip

FROM python:3.13-slim-bookworm
LABEL org.opencontainers.image.title="gputest-bot" \
      org.opencontainers.image.description="A ChatOps bot for GPU test runs" \
      org.opencontainers.image.version="0.1.0"
COPY --from=build /venv /venv
ENV PATH=/venv/bin:$PATH
USER 65532:65532
EXPOSE 8080
HEALTHCHECK --interval=30s --timeout=3s CMD ["/venv/bin/python", "-c", "import urllib.request as u; u.urlopen('http://127.0.0.1:8080/healthz', timeout=2)"]
ENTRYPOINT ["/venv/bin/gputest-bot"]
CMD ["run", "--config", "/etc/gputest/config.yaml"]
