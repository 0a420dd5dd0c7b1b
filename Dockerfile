# syntax=docker/dockerfile:1
# The API. Built for arm64 by the deployment; runs as 10001:10001 on a read-only root file system.
# Both images are pinned by the digest of their multi-platform index.
FROM ghcr.io/astral-sh/uv:0.13.0@sha256:cdc6093146eb3ff6a40107b38f008b789e050e77ad87865e381d9917da55a168 AS uv

FROM python:3.13.16-slim-trixie@sha256:bf44cdfcb76cd3b41e879bc058fc37ec5872002ccfde7fcb765e218cde0cd79c AS build
COPY --from=uv /uv /usr/local/bin/uv
WORKDIR /build
COPY requirements.txt ./
COPY api_services/http/requirements.txt ./http/
RUN uv pip install --no-cache --only-binary :all: --target /app/site --constraint requirements.txt -r http/requirements.txt
# What is never read: scripts, and the descriptions of every AWS service but those the API calls.
RUN rm -rf /app/site/bin && \
    find /app/site/botocore/data -mindepth 1 -maxdepth 1 -type d ! -name secretsmanager ! -name sqs -exec rm -rf {} +
COPY api_services /app/api_services
RUN python -m compileall -q -j 0 --invalidation-mode unchecked-hash -s /app -p /app /app

FROM python:3.13.16-slim-trixie@sha256:bf44cdfcb76cd3b41e879bc058fc37ec5872002ccfde7fcb765e218cde0cd79c
ENV PYTHONPATH=/app:/app/site \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1
COPY --from=build /app /app
WORKDIR /app
USER 10001:10001
EXPOSE 8000
CMD ["python", "-m", "api_services.http", "--host", "0.0.0.0", "--port", "8000"]
