# The environment on GPUs, with the CUDA that torch 2.13.0 is built with; the driver must be 580 or newer:
#   docker build -f docker/gpu.Dockerfile -t dprope-gpu .
#   docker run --rm -it --gpus all --ipc=host --ulimit memlock=-1 dprope-gpu make test
# With FlashAttention-2, which is compiled: 80 for A100, 90 for H100; MAX_JOBS files at a time, each in up to 9 GB.
#   docker build --build-arg FLASH_ATTN_CUDA_ARCHS=80 --build-arg MAX_JOBS=8 -f docker/gpu.Dockerfile -t dprope-gpu .
# This file was linted and never built.
FROM nvidia/cuda:13.0.3-devel-ubuntu24.04

# Triton compiles a little C when a kernel first runs: g++ and Python's headers stay.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends g++ git make python3 python3-dev python3-venv \
    && rm -rf /var/lib/apt/lists/*

WORKDIR /dprope
ENV PIP_NO_CACHE_DIR=1

# The environment first: a change of code then leaves it as it is.
COPY Makefile requirements.lock requirements-data.lock requirements-flash.txt ./
RUN make env

ARG FLASH_ATTN_CUDA_ARCHS=""
ARG MAX_JOBS=4
RUN if [ -n "$FLASH_ATTN_CUDA_ARCHS" ]; then \
        .venv/bin/python -m pip install wheel==0.48.0 \
        && .venv/bin/python -m pip install --no-build-isolation -r requirements-flash.txt; \
    fi

COPY . .
# Make goes by time, and the files of a new checkout are newer than a layer that was kept.
RUN touch .venv/.installed
CMD ["bash"]
