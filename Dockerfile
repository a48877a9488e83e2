# The quorate command in an image of its own: static, without a shell, not root.
#
#   docker build -t quorate .
#   docker run --rm -e QUORATE_NODES=redis://a:6379,redis://b:6379,redis://c:6379 quorate check
#
# To run a command under a lock, copy the binary into that command's image:
#
#   COPY --from=quorate /quorate /usr/local/bin/quorate
FROM golang:1.26@sha256:3aff6657219a4d9c14e27fb1d8976c49c29fddb70ba835014f477e1c70636647 AS build
WORKDIR /src
COPY . .
RUN CGO_ENABLED=0 go build -C cmd/quorate -trimpath -ldflags='-s -w' -o /quorate .

FROM gcr.io/distroless/static-debian12:nonroot@sha256:d093aa3e30dbadd3efe1310db061a14da60299baff8450a17fe0ccc514a16639
COPY --from=build /quorate /quorate
USER nonroot
ENTRYPOINT ["/quorate"]
