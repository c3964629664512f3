package embedded

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"github.com/kube-gauntlet/gauntlet/harness/inputfile"
	"github.com/kube-gauntlet/gauntlet/harness/internal/executable"
)

// The versions of the programs that `gauntlet setup` builds. A test verifies that package setup
// builds these versions.
const (
	EtcdVersion       = "v3.6.8"
	KubernetesVersion = "v1.36.3"
	KWOKVersion       = "v0.8.0"
)

// Versions returns the version of each project whose programs a cluster runs: "etcd", "kubernetes"
// and "kwok". An empty dir means the programs that `gauntlet setup` builds. Otherwise, dir is the
// user's own directory of binaries, whose versions are unknown. Each version is then the text "as
// found in DIR".
func Versions(dir string) map[string]string {
	versions := map[string]string{"etcd": EtcdVersion, "kubernetes": KubernetesVersion, "kwok": KWOKVersion}
	if dir != "" {
		for project := range versions {
			versions[project] = "as found in " + dir
		}
	}
	return versions
}

// Binaries contains the paths of the executables that an embedded cluster runs.
type Binaries struct {
	Etcd                  string
	KubeAPIServer         string
	KubeControllerManager string
	KubeScheduler         string
	KWOK                  string
}

// FindBinaries returns the paths of the programs in dir, such as dir/etcd and dir/kube-apiserver.
// If dir is empty, FindBinaries searches the cache directory that `gauntlet setup` fills. It
// returns an error if a program is missing.
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
		programDir := dir
		if dir == "" {
			programDir = filepath.Join(cache, program.project+"-"+program.version)
		}
		path := filepath.Join(programDir, program.name)
		if err := executable.Check(path); err != nil {
			return Binaries{}, notFound(dir, program.name, program.version, err)
		}
		*program.path = path
	}
	return b, nil
}

// notFound returns the error of [FindBinaries] for a program that is missing or cannot run. The
// argument err says why. An empty dir means the cache; the error then says that `gauntlet setup`
// builds the program.
func notFound(dir, name, version string, err error) error {
	if dir != "" {
		switch info, err := os.Stat(dir); {
		case err == nil && !info.IsDir():
			return fmt.Errorf("directory of binaries %s: found a file; expected a directory with the binaries of etcd, Kubernetes and KWOK", dir)
		case err != nil:
			return fmt.Errorf("directory of binaries %s: %w; expected a directory with the binaries of etcd, Kubernetes and KWOK", dir, inputfile.Reason(err))
		}
		return fmt.Errorf("directory of binaries %s: %s: %w", dir, name, err)
	}
	return fmt.Errorf("program %s %s in the cache: %w; run \"gauntlet setup\" to build the program", name, version, err)
}

// upstreamCache returns the cache directory into which `gauntlet setup` builds etcd, Kubernetes and
// KWOK.
func upstreamCache() (string, error) {
	cache := os.Getenv("XDG_CACHE_HOME")
	if cache == "" {
		home := os.Getenv("HOME")
		if home == "" {
			return "", errors.New("finding the cache of upstream binaries: neither XDG_CACHE_HOME nor HOME is set; set one of these environment variables")
		}
		cache = filepath.Join(home, ".cache")
	}
	return filepath.Join(cache, "gauntlet", "upstream", runtime.GOOS+"-"+runtime.GOARCH), nil
}
