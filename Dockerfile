# Everything a run needs, on the CPU; the build makes the README's first run, so that an image that was built works.
#
#   docker build -t orthobench .
#   docker run --rm -v "$PWD/runs:/home/runner/runs" orthobench model=lstm task=adding T=50
#
# With a GPU: --build-arg TORCH_INDEX=https://pypi.org/simple, whose torch has CUDA, and `docker run --gpus all`.
FROM python:3.11-slim

ARG TORCH_INDEX=https://download.pytorch.org/whl/cpu

# The compiler builds the loops of engine=native.
RUN apt-get update && apt-get install --yes --no-install-recommends gcc libc6-dev && rm -rf /var/lib/apt/lists/*

WORKDIR /src
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY conf conf
COPY results/published results/published
COPY orthobench orthobench
RUN pip install --no-cache-dir --extra-index-url "$TORCH_INDEX" -c constraints.txt .

# Runs are written into the home of a user without rights.
RUN useradd --create-home runner
USER runner
WORKDIR /home/runner
ENV OMP_NUM_THREADS=1
RUN orthobench doctor \
    && orthobench model=scornn task=copying T=200 trainer.max_steps=2000 runs_root=/tmp/first \
    && rm -rf /tmp/first

ENTRYPOINT ["orthobench"]
CMD ["--help"]
