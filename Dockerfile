# The monitor's processes; each container runs one command of `monitor`. Nothing here is a server that listens.
FROM python:3.13-slim

WORKDIR /src
COPY constraints.txt pyproject.toml README.md LICENSE ./
COPY config ./config
COPY monitor ./monitor
COPY agents ./agents
RUN pip install --no-cache-dir -c constraints.txt . && rm -rf /src/*

# Faust wants a folder to write to; what counts is kept in Kafka and Redis.
RUN useradd --system --uid 10001 --create-home --home-dir /var/lib/monitor monitor
USER monitor
WORKDIR /var/lib/monitor
ENV MONITOR_DATA_DIR=/var/lib/monitor PYTHONUNBUFFERED=1

ENTRYPOINT ["monitor"]
CMD ["--help"]
