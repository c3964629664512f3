# The image of one control plane component: a statically linked program, which kubeadm
# runs as a static pod.
FROM scratch
COPY . /
ENV PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
