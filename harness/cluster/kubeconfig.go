package cluster

import (
	"fmt"
	"os"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
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
