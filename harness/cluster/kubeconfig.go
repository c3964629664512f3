package cluster

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/kube-gauntlet/gauntlet/harness/inputfile"
	"github.com/kube-gauntlet/gauntlet/harness/nearest"
)

// Kubeconfig encodes a client configuration as a kubeconfig file with one context, for kubectl and
// other programs.
func Kubeconfig(config *rest.Config) ([]byte, error) {
	const name = "gauntlet"
	data, err := clientcmd.Write(api.Config{
		Clusters: map[string]*api.Cluster{name: {
			Server: config.Host, CertificateAuthorityData: config.CAData, CertificateAuthority: config.CAFile,
			TLSServerName: config.ServerName,
		}},
		AuthInfos: map[string]*api.AuthInfo{name: {
			Token: config.BearerToken, TokenFile: config.BearerTokenFile,
			ClientCertificateData: config.CertData, ClientCertificate: config.CertFile,
			ClientKeyData: config.KeyData, ClientKey: config.KeyFile,
		}},
		Contexts:       map[string]*api.Context{name: {Cluster: name, AuthInfo: name}},
		CurrentContext: name,
	})
	if err != nil {
		return nil, fmt.Errorf("encoding a kubeconfig for the API server at %s: %w", config.Host, err)
	}
	return data, nil
}

// WriteKubeconfig writes a client configuration to a kubeconfig file. The file has mode 0600,
// because it contains credentials.
func WriteKubeconfig(path string, config *rest.Config) error {
	data, err := Kubeconfig(config)
	if err != nil {
		return err
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		return fmt.Errorf("writing the kubeconfig %s: %w", path, err)
	}
	return nil
}

// Load returns the client configuration and the namespace of the context that o selects. It sends no
// request. It ignores the fields of o besides Kubeconfig and Context.
func (o Existing) Load() (config *rest.Config, namespace string, err error) {
	if o.Kubeconfig != "" {
		if _, err := os.Stat(o.Kubeconfig); errors.Is(err, fs.ErrNotExist) {
			return nil, "", fmt.Errorf("kubeconfig %s: %w; expected the path of a kubeconfig in --kubeconfig", o.Kubeconfig, fs.ErrNotExist)
		}
	}
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.Kubeconfig
	if err := checkReadable(rules.GetLoadingPrecedence()); err != nil {
		return nil, "", err
	}
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: o.Context})
	files := strings.Join(rules.GetLoadingPrecedence(), ", ")
	if err := o.checkCredentials(loader); err != nil {
		return nil, "", fmt.Errorf("loading the kubeconfig %s: %w", files, err)
	}
	if config, err = loader.ClientConfig(); err != nil {
		return nil, "", o.loadError(files, loader, err)
	}
	if err := o.checkUser(loader); err != nil {
		return nil, "", fmt.Errorf("loading the kubeconfig %s: %w", files, err)
	}
	server, _, err := rest.DefaultServerUrlFor(config)
	if err != nil || server.Scheme != "https" && server.Scheme != "http" || !validPort(server.Port()) {
		return nil, "", fmt.Errorf("loading the kubeconfig %s: server: found %q; expected the URL of an API server, such as https://10.0.0.1:6443", files, config.Host)
	}
	if strings.ContainsFunc(config.BearerToken, unicode.IsControl) {
		return nil, "", fmt.Errorf("loading the kubeconfig %s: token: found a line break or another control character; expected a token without them", files)
	}
	if _, err := rest.HTTPClientFor(config); err != nil { // for example, a certificate that is no PEM block
		return nil, "", fmt.Errorf("loading the kubeconfig %s: %w; correct the cluster or the user of the context", files, err)
	}
	namespace, _, err = loader.Namespace()
	return config, namespace, err
}

// checkReadable returns an error if a kubeconfig exists but is no text file, such as a pipe or a device.
// The loader of client-go would wait for the end of a pipe, or read a device until memory is full.
func checkReadable(paths []string) error {
	for _, path := range paths {
		if _, err := inputfile.ReadText(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("loading the kubeconfig %w; set --kubeconfig or KUBECONFIG to the path of a kubeconfig", err)
		}
	}
	return nil
}

// checkCredentials returns an error if a file that the selected context names is not a regular file. Such
// files have certificates, keys and tokens. It ignores a kubeconfig that the loader cannot load.
func (o Existing) checkCredentials(loader clientcmd.ClientConfig) error {
	config, err := loader.RawConfig()
	if err != nil {
		return nil
	}
	context := config.Contexts[cmp.Or(o.Context, config.CurrentContext)]
	if context == nil {
		return nil
	}
	var paths []string
	if cluster := config.Clusters[context.Cluster]; cluster != nil {
		paths = append(paths, cluster.CertificateAuthority)
	}
	if user := config.AuthInfos[context.AuthInfo]; user != nil {
		paths = append(paths, user.ClientCertificate, user.ClientKey, user.TokenFile)
	}
	for _, path := range paths {
		if err := inputfile.CheckRegular(path); err != nil {
			return err
		}
	}
	return nil
}

// validPort reports whether a text is a port of a URL. The empty text means the default port.
func validPort(text string) bool {
	_, err := strconv.ParseUint(text, 10, 16)
	return err == nil || text == ""
}

// loadError returns the error for a kubeconfig that the loader could not load because of the cause.
// The argument files has the paths of the kubeconfig, for the message.
func (o Existing) loadError(files string, loader clientcmd.ClientConfig, cause error) error {
	config, err := loader.RawConfig()
	if err != nil {
		return fmt.Errorf("loading the kubeconfig %s: %s; set --kubeconfig, --context or KUBECONFIG", files, inputfile.JSONReason(err))
	}
	name, known := cmp.Or(o.Context, config.CurrentContext), slices.Sorted(maps.Keys(config.Contexts))
	switch {
	case files == "":
		return errors.New("loading the kubeconfig: found no path in KUBECONFIG; set --kubeconfig or KUBECONFIG to the path of a kubeconfig")
	case len(known) == 0 && !anyExists(filepath.SplitList(os.Getenv(clientcmd.RecommendedConfigPathEnvVar))) && o.Kubeconfig == "":
		return fmt.Errorf("loading the kubeconfig %s: no such file; set --kubeconfig or KUBECONFIG to the path of a kubeconfig", files)
	case len(known) == 0:
		return fmt.Errorf("loading the kubeconfig %s: found no context; set --kubeconfig or KUBECONFIG to the path of a kubeconfig", files)
	case name == "":
		return fmt.Errorf("loading the kubeconfig %s: found no current context; set --context to a context of this file: %s", files, nearest.List(known, "or"))
	case config.Contexts[name] == nil:
		return fmt.Errorf("loading the kubeconfig %s: context %q does not exist; expected a context of this file: %s", files, name, nearest.List(known, "or"))
	}
	if cluster := config.Contexts[name].Cluster; config.Clusters[cluster] == nil {
		return fmt.Errorf("loading the kubeconfig %s: context %q: cluster: found %q, which does not exist; expected the name of a cluster in the kubeconfig", files, name, cluster)
	}
	return fmt.Errorf("loading the kubeconfig %s: %s; set --kubeconfig, --context or KUBECONFIG", files, configReason(cause))
}

// checkUser returns an error if the user of the context does not exist. Otherwise, client-go would connect
// without credentials.
func (o Existing) checkUser(loader clientcmd.ClientConfig) error {
	config, err := loader.RawConfig()
	if err != nil {
		return err
	}
	name := cmp.Or(o.Context, config.CurrentContext)
	if used := config.Contexts[name]; used != nil && used.AuthInfo != "" && config.AuthInfos[used.AuthInfo] == nil {
		return fmt.Errorf("context %q: user: found %q, which does not exist; expected the name of a user in the kubeconfig", name, used.AuthInfo)
	}
	return nil
}

// configReason returns the text of an error of client-go about the content of a kubeconfig. For
// several mistakes, client-go has a list in brackets.
func configReason(err error) string {
	text := strings.TrimPrefix(inputfile.JSONReason(err), "invalid configuration: ")
	if list, ok := strings.CutPrefix(text, "["); ok {
		text = strings.TrimSuffix(list, "]")
	}
	return text
}

// anyExists reports whether one of the files exists.
func anyExists(paths []string) bool {
	return slices.ContainsFunc(paths, func(path string) bool { _, err := os.Stat(path); return err == nil })
}
