module gputest.example/rig/cilium

go 1.25.0

require github.com/cilium/cilium v1.18.0
