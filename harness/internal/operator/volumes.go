package operator

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kube-gauntlet/gauntlet/harness/nearest"
	"github.com/kube-gauntlet/gauntlet/harness/subject"
)

// volumeMount is a mount of a container, together with the volume that it mounts.
type volumeMount struct {
	corev1.VolumeMount
	volume corev1.Volume
}

// mountsOf returns the mounts of a container. The argument volumes are the volumes of its pod.
func mountsOf(container corev1.Container, volumes []corev1.Volume) []volumeMount {
	var mounts []volumeMount
	for _, mount := range container.VolumeMounts {
		for _, volume := range volumes {
			if volume.Name == mount.Name {
				mounts = append(mounts, volumeMount{mount, volume})
			}
		}
	}
	return mounts
}

// hasCertificates reports whether the volume is a Secret with certificates. It is one if the name of
// the Secret or the path of the mount contains "cert".
func (m volumeMount) hasCertificates() bool {
	return m.volume.Secret != nil && strings.Contains(m.volume.Secret.SecretName+m.MountPath, "cert")
}

// optional reports whether a pod starts without the ConfigMap or Secret of the volume. It is also true for a
// service account's volume, because a run has its files.
func (m volumeMount) optional() bool {
	if isTrue(cmp.Or(m.volume.ConfigMap, &corev1.ConfigMapVolumeSource{}).Optional) || isTrue(cmp.Or(m.volume.Secret, &corev1.SecretVolumeSource{}).Optional) {
		return true
	}
	return strings.HasPrefix(m.MountPath, "/var/run/secrets/kubernetes.io/serviceaccount")
}

// volumes returns the volumes that the program finds in a run. These are certificates, ConfigMaps and
// Secrets of the manifests, and empty directories. It returns no empty directory whose path exists on
// this machine, such as /tmp, and no single file of the certificates. If the argument files has the
// name of a file in a volume, the file gets the content from there. The result missing has the other
// volumes that a pod would need.
func (s *objects) volumes(files map[string]string) (volumes []subject.Volume, missing []string) {
	for _, m := range s.mounts {
		if m.SubPathExpr != "" {
			missing = append(missing, fmt.Sprintf("%s at %s (subPathExpr is not supported)", m.Name, m.MountPath))
		}
		if m.SubPathExpr != "" || m.hasCertificates() && m.SubPath != "" {
			continue
		}
		v := subject.Volume{Path: filepath.Clean(m.MountPath), Certificates: s.servesCertificates(m)}
		if m.volume.EmptyDir != nil {
			if _, err := os.Stat(m.MountPath); err == nil || m.SubPath != "" {
				continue
			}
		} else if !v.Certificates {
			var absent []string
			v.Files, absent = s.filesOf(m.volume)
			v.File = m.SubPath
			for _, key := range absent {
				if !m.optional() {
					missing = append(missing, fmt.Sprintf("%s at %s (%s)", m.Name, m.MountPath, s.lackOf(m.volume, key)))
				}
			}
			if _, ok := v.Files[v.File]; v.Files == nil || v.File != "" && !ok {
				if !m.optional() { // the manifests do not contain the ConfigMap, Secret or file
					missing = append(missing, fmt.Sprintf("%s at %s (%s)", m.Name, m.MountPath, s.lackOf(m.volume, m.SubPath)))
				}
				continue
			}
		}
		for name := range v.Files {
			if content, ok := files[name]; ok {
				v.Files[name] = content
			}
		}
		volumes = append(volumes, v)
	}
	return volumes, missing
}

// servesCertificates reports whether a volume has the serving certificate of the webhooks. Further
// Secrets with certificates have their own data, if the manifests contain them.
func (s *objects) servesCertificates(m volumeMount) bool {
	return m.hasCertificates() && (m.volume.Secret.SecretName == s.secret || len(s.dataOf("Secret", m.volume.Secret.SecretName)) == 0)
}

// filesOf returns the files of a volume that is a ConfigMap or a Secret in the manifests. They are
// templates. For all other volumes, it returns nil. The result absent has the keys of the volume that
// the object lacks.
func (s *objects) filesOf(volume corev1.Volume) (files map[string]string, absent []string) {
	data := s.dataOf(objectOf(volume))
	var items []corev1.KeyToPath
	switch {
	case volume.ConfigMap != nil:
		items = volume.ConfigMap.Items
	case volume.Secret != nil:
		items = volume.Secret.Items
	}
	if data == nil {
		return nil, nil
	}
	for _, item := range items {
		if _, ok := data[item.Key]; !ok {
			absent = append(absent, item.Key)
		}
	}
	files = map[string]string{}
	for key, content := range data {
		name := key
		if i := slices.IndexFunc(items, func(item corev1.KeyToPath) bool { return item.Key == key }); i >= 0 {
			name = items[i].Path
		} else if len(items) > 0 {
			continue
		}
		if filepath.Base(name) == name { // a volume has no subdirectories
			files[name] = templateOf(content)
		}
	}
	return files, absent
}

// lackOf says why the program does not get a key of a volume, or the whole volume.
func (s *objects) lackOf(volume corev1.Volume, key string) string {
	kind, name := objectOf(volume)
	data := s.dataOf(kind, name)
	switch {
	case kind == "":
		return nearest.List(sourcesOf(volume.VolumeSource), "and") + " is not supported"
	case data == nil:
		return s.absent(kind, name)
	}
	return fmt.Sprintf("%s %s has no key %s%s", kind, name, key, nearest.Suggestion(key, slices.Sorted(maps.Keys(data))))
}

// objectOf returns the ConfigMap or Secret of a volume. All results are empty for other volumes.
func objectOf(volume corev1.Volume) (kind, name string) {
	switch {
	case volume.ConfigMap != nil:
		return "ConfigMap", volume.ConfigMap.Name
	case volume.Secret != nil:
		return "Secret", volume.Secret.SecretName
	}
	return "", ""
}

// dataOf returns the data of a ConfigMap or Secret in the manifests, in the namespace of the Deployment. The
// result is nil if they do not contain the object.
func (s *objects) dataOf(kind, name string) map[string]string {
	i := slices.IndexFunc(s.install, func(o *unstructured.Unstructured) bool {
		return o.GetKind() == kind && o.GetName() == name && (o.GetNamespace() == s.namespace || o.GetNamespace() == "" || s.namespace == "")
	})
	if i < 0 {
		return nil
	}
	var config corev1.ConfigMap
	var secret corev1.Secret
	data, encoded := map[string]string{}, map[string][]byte{}
	switch convert := runtime.DefaultUnstructuredConverter.FromUnstructured; {
	case kind == "ConfigMap" && convert(s.install[i].Object, &config) == nil:
		maps.Copy(data, config.Data)
		encoded = config.BinaryData
	case kind == "Secret" && convert(s.install[i].Object, &secret) == nil:
		maps.Copy(data, secret.StringData)
		encoded = secret.Data
	}
	for key, content := range encoded {
		data[key] = string(content)
	}
	return data
}

// bindAddress matches a line of YAML such as "bindAddress: :8080". The port is on all addresses or on
// the loopback address.
var bindAddress = regexp.MustCompile(`(?m)^(\s*\w*[bB]indAddress:\s*)["']?(?:0\.0\.0\.0|127\.0\.0\.1|localhost|\[::\])?:(\d+)["']?\s*$`)

// templateOf returns the template of a file with the given content. The replica's own loopback
// address replaces the addresses that [bindAddress] matches, so that several replicas can use the
// same ports.
func templateOf(content string) string {
	content = strings.ReplaceAll(content, "{{", `{{"{{"}}`)
	return bindAddress.ReplaceAllString(content, `${1}"{{.Address}}:${2}"`)
}
