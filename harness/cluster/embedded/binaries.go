package embedded

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
)

// The versions of the programs, as harness/upstream/go.mod pins them. A test
// compares them, so that changing one place alone fails.
const (
	EtcdVersion       = "v3.6.8"
	KubernetesVersion = "v1.36.3"
	KWOKVersion       = "v0.8.0"
)

// Versions are the versions of the programs by project, given the directory that
// they are taken from; of a directory of the user's own it is not known what is
// in it.
func Versions(dir string) map[string]string {
	versions := map[string]string{"etcd": EtcdVersion, "kubernetes": KubernetesVersion, "kwok": KWOKVersion}
	if dir != "" {
		for project := range versions {
			versions[project] = "as found in " + dir
		}
	}
	return versions
}

// Binaries is the paths of the programs of a control plane.
type Binaries struct {
	Etcd                  string
	KubeAPIServer         string
	KubeControllerManager string
	KubeScheduler         string
	KWOK                  string
}

// FindBinaries looks for the programs in dir, all in one directory under their
// usual names; an empty dir is the cache that harness/upstream builds into.
func FindBinaries(dir string) (Binaries, error) {
	cache := ""
	if dir == "" {
		var err error
		if cache, err = upstreamCache(); err != nil {
			return Binaries{}, err
		}
	}
	var b Binaries
	for _, program := range []struct {
		path             *string
		name             string
		project, version string
	}{
		{&b.Etcd, "etcd", "etcd", EtcdVersion},
		{&b.KubeAPIServer, "kube-apiserver", "kubernetes", KubernetesVersion},
		{&b.KubeControllerManager, "kube-controller-manager", "kubernetes", KubernetesVersion},
		{&b.KubeScheduler, "kube-scheduler", "kubernetes", KubernetesVersion},
		{&b.KWOK, "kwok", "kwok", KWOKVersion},
	} {
		place := dir
		if dir == "" {
			place = filepath.Join(cache, program.project+"-"+program.version)
		}
		path := filepath.Join(place, program.name)
		if err := executable(path); err != nil {
			return Binaries{}, notFound(dir, program.name, program.version, err)
		}
		*program.path = path
	}
	return b, nil
}

func notFound(dir, name, version string, err error) error {
	if dir != "" {
		return fmt.Errorf("the directory of binaries %s lacks a usable %s: %w", dir, name, err)
	}
	return fmt.Errorf("%s %s is not there: run `make upstream`, which builds it: %w", name, version, err)
}

func executable(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return err
	case !info.Mode().IsRegular() || info.Mode()&0o111 == 0:
		return fmt.Errorf("%s is not an executable file", path)
	}
	return nil
}

// upstreamCache is the directory that harness/upstream builds into.
func upstreamCache() (string, error) {
	cache := os.Getenv("XDG_CACHE_HOME")
	if cache == "" {
		home := os.Getenv("HOME")
		if home == "" {
			return "", errors.New("looking for the upstream binaries: neither XDG_CACHE_HOME nor HOME is set")
		}
		cache = filepath.Join(home, ".cache")
	}
	return filepath.Join(cache, "gauntlet", "upstream", runtime.GOOS+"-"+runtime.GOARCH), nil
}
