package subject

import (
	"cmp"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"k8s.io/client-go/rest"

	"github.com/kube-gauntlet/gauntlet/harness/internal/process"
)

// Volume is a directory or a file at a fixed path, like a volume of a container.
type Volume struct {
	// Path is the absolute path at which the program finds the volume.
	Path string
	// Files maps the names of the files in the volume to their contents, which are templates. A
	// volume without files is an empty directory. The program may write to it, and finds its files
	// again after a restart.
	Files map[string]string
	// File is the name of one file of the volume. If it is not empty, Path is the path of this file.
	File string
	// Certificates is true for the directory with the serving certificate of the webhooks. Such a
	// volume has no Files.
	Certificates bool
}

// VolumesSupported returns an error if this machine does not permit mount namespaces. A program then
// finds neither its volumes nor the files of a ServiceAccount.
func VolumesSupported() error { return process.MountsSupported() }

// accountDirectory is the directory in which Kubernetes mounts the files of a ServiceAccount into
// every container.
const accountDirectory = "/var/run/secrets/kubernetes.io/serviceaccount"

// writeVolumes writes the files of a replica's volumes to the directory dir, and returns their
// mounts. The program's own paths must stay visible, so a volume whose path contains one of them is
// left out.
func writeVolumes(volumes []Volume, dir string, values Values, own ...string) ([]process.Mount, error) {
	var mounts []process.Mount
	for i, v := range volumes {
		if slices.ContainsFunc(own, func(path string) bool { return within(v.Path, path) }) {
			continue
		}
		source := values.Certificates
		if !v.Certificates {
			source = filepath.Join(dir, strconv.Itoa(i))
			if err := writeTemplates(source, v.Files, values); err != nil {
				return nil, fmt.Errorf("writing the files of the volume %s: %w", v.Path, err)
			}
		}
		mounts = append(mounts, process.Mount{Source: filepath.Join(source, v.File), Target: v.Path})
	}
	slices.SortFunc(mounts, func(a, b process.Mount) int { return cmp.Compare(a.Target, b.Target) })
	return mounts, nil
}

// within reports whether path is the directory dir or is below it.
func within(dir, path string) bool {
	relative, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(relative)
}

// accountOf returns the volume with the files of a ServiceAccount. The result env has the variables
// with which a program in a cluster finds the API server. The argument config is the configuration of
// the replica's clients.
func accountOf(config *rest.Config) (account Volume, env []string, err error) {
	server, err := url.Parse(config.Host)
	if err != nil {
		return Volume{}, nil, err
	}
	host, port, err := net.SplitHostPort(server.Host)
	if err != nil {
		return Volume{}, nil, fmt.Errorf("address of the API server: %w", err)
	}
	account = Volume{Path: accountDirectory, Files: map[string]string{"namespace": "{{.Namespace}}", "token": config.BearerToken, "ca.crt": string(config.CAData)}}
	return account, []string{"KUBERNETES_SERVICE_HOST=" + host, "KUBERNETES_SERVICE_PORT=" + port}, nil
}

// checkVolumes returns an error for a volume whose path or files are not valid.
func (d *Definition) checkVolumes() error {
	for i, v := range d.Volumes {
		if !filepath.IsAbs(v.Path) || filepath.Clean(v.Path) == "/" || strings.ContainsRune(v.Path, 0) {
			return &FieldError{fmt.Sprintf("volumes[%d].path", i), fmt.Errorf("found %.80q; expected an absolute path other than /", v.Path)}
		}
		if err := checkFiles(v.Files); err != nil {
			return &FieldError{fmt.Sprintf("volumes[%d].files", i), err}
		}
		if _, ok := v.Files[v.File]; v.File != "" && !ok {
			return &FieldError{fmt.Sprintf("volumes[%d].file", i), fmt.Errorf("found %.80q; expected the name of a file of the volume", v.File)}
		}
	}
	return nil
}
