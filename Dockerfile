# An image with plumdp and all its kernels compiled:
#   docker build -t plumdp .                                 (--build-arg EXTRAS='[storm,gym]' for extras)
#   docker run --rm -v "$PWD:/work" -u "$(id -u)" plumdp certify model.py:robot log.parquet -o result
# Kernels are compiled for the processor of the machine that builds the image; on another kind they are compiled again.
FROM python:3.13-slim

ARG EXTRAS=""
COPY pyproject.toml README.md LICENSE /plumdp/
COPY src /plumdp/src
RUN pip install --no-cache-dir "/plumdp${EXTRAS}" && rm -r /plumdp && plumdp warmup

# for users without a home, as with -u
ENV HOME=/tmp
WORKDIR /work
ENTRYPOINT ["plumdp"]
