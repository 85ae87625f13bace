# The environment on a CPU:
#   docker build -f docker/cpu.Dockerfile -t dprope .
#   docker run --rm -it dprope make test
# PyPI's torch brings CUDA's libraries, unused here. An index with torch's CPU build makes the image some GB smaller:
#   docker build --build-arg PIP_EXTRA_INDEX_URL=… -f docker/cpu.Dockerfile -t dprope .
# This file was linted and never built.
FROM python:3.11-slim-bookworm

# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends git make \
    && rm -rf /var/lib/apt/lists/*

WORKDIR /dprope
ENV PIP_NO_CACHE_DIR=1
ARG PIP_EXTRA_INDEX_URL=""

# The environment first: a change of code then leaves it as it is.
COPY Makefile requirements.lock requirements-data.lock ./
RUN make env

COPY . .
# Make goes by time, and the files of a new checkout are newer than a layer that was kept.
RUN touch .venv/.installed
CMD ["bash"]
