package embedded

import (
	"fmt"
	"os"
	"path/filepath"
)

// auditPolicy is the content of kube-apiserver's audit policy file. With this policy, the audit log
// contains the body of each request and the response, without managed fields. For a request for a
// ServiceAccount token, it contains only metadata. It omits requests for non-resource URLs, such as
// /healthz.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
omitManagedFields: true
rules:
- level: None
  nonResourceURLs: ["*"]
- level: Metadata
  resources:
  - group: ""
    resources: ["serviceaccounts/token"]
- level: RequestResponse
`

// auditLogMegabytes is the size of an audit log at which kube-apiserver would begin another file. No
// run writes that much.
const auditLogMegabytes = 1 << 20

// auditArgs returns kube-apiserver's flags for the audit log at path. Without a path, it returns no
// flags.
func (l layout) auditArgs(path string) []string {
	if path == "" {
		return nil
	}
	return []string{
		"--audit-policy-file=" + l.file(auditPolicyFile),
		"--audit-log-path=" + path,
		"--audit-log-mode=blocking", // a killed kube-apiserver then loses no request that it has answered
		fmt.Sprintf("--audit-log-maxsize=%d", auditLogMegabytes),
	}
}

// createAuditDirectory creates the directory of an audit log, which can contain secrets.
func createAuditDirectory(path string) error {
	if path == "" {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("creating the directory of the audit log: %w", err)
	}
	return nil
}
