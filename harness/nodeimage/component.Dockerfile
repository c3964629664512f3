# One static program, as a static pod runs it.
FROM scratch
COPY . /
ENV PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
