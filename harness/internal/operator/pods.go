package operator

import (
	"cmp"
	"fmt"
	"path"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kube-gauntlet/gauntlet/harness/nearest"
)

// checkPodSpec returns an error about the containers and volumes of a pod or of a template for pods.
func checkPodSpec(at string, spec *corev1.PodSpec) error {
	if len(spec.Containers) == 0 {
		return fmt.Errorf("%s.containers: found no container; expected at least one", at)
	}
	names := map[string]bool{}
	for _, list := range []struct {
		name       string
		containers []corev1.Container
	}{{"initContainers", spec.InitContainers}, {"containers", spec.Containers}} {
		for i, container := range list.containers {
			at := fmt.Sprintf("%s.%s[%d]", at, list.name, i)
			if err := checkUnique(at+".name", container.Name, names); err != nil {
				return err
			}
			if err := checkMounts(at, container, spec.Volumes); err != nil {
				return err
			}
		}
	}
	if name := spec.ServiceAccountName; name != "" && len(validation.IsDNS1123Subdomain(name)) > 0 {
		return wrong(at+".serviceAccountName", name, dnsSubdomain)
	}
	if err := checkLabels(at+".nodeSelector", spec.NodeSelector); err != nil {
		return err
	}
	return checkVolumes(at, spec.Volumes)
}

// checkUnique returns an error about the name of a container or volume. The name must be a DNS label that does
// not occur twice. checkUnique adds it to the names before it.
func checkUnique(at, name string, before map[string]bool) error {
	switch {
	case len(validation.IsDNS1123Label(name)) > 0:
		return wrong(at, name, dnsLabel)
	case before[name]:
		return fmt.Errorf("%s: found %q twice; expected each name once", at, name)
	}
	before[name] = true
	return nil
}

// checkVolumes returns an error about the names or sources of the volumes of a pod.
func checkVolumes(at string, volumes []corev1.Volume) error {
	names := map[string]bool{}
	for i, volume := range volumes {
		at := fmt.Sprintf("%s.volumes[%d]", at, i)
		if sources := sourcesOf(volume.VolumeSource); len(sources) > 1 {
			return fmt.Errorf("%s: found %s; expected one of them", at, nearest.List(sources, "and"))
		}
		if err := checkUnique(at+".name", volume.Name, names); err != nil {
			return err
		}
		if volume.ConfigMap != nil && volume.ConfigMap.Name == "" {
			return wrong(at+".configMap.name", nil, "the name of a ConfigMap")
		}
		if err := checkModes(at, volume.VolumeSource); err != nil {
			return err
		}
	}
	return nil
}

// checkModes returns an error about the default mode of the files of a volume.
func checkModes(at string, source corev1.VolumeSource) error {
	switch {
	case source.ConfigMap != nil:
		return checkMode(at+".configMap.defaultMode", source.ConfigMap.DefaultMode)
	case source.Secret != nil:
		return checkMode(at+".secret.defaultMode", source.Secret.DefaultMode)
	case source.Projected != nil:
		return checkMode(at+".projected.defaultMode", source.Projected.DefaultMode)
	case source.DownwardAPI != nil:
		return checkMode(at+".downwardAPI.defaultMode", source.DownwardAPI.DefaultMode)
	}
	return nil
}

// checkMounts returns an error about a mount of a container. Its volume must be among those of the pod.
func checkMounts(at string, container corev1.Container, volumes []corev1.Volume) error {
	var names []string
	for _, volume := range volumes {
		names = append(names, volume.Name)
	}
	paths := map[string]bool{}
	for i, mount := range container.VolumeMounts {
		at := fmt.Sprintf("%s.volumeMounts[%d]", at, i)
		switch {
		case !slices.Contains(names, mount.Name):
			return wrong(at+".name", mount.Name, "the name of one of the volumes of the pod"+nearest.Suggestion(mount.Name, names))
		case mount.MountPath == "":
			return wrong(at+".mountPath", nil, "a path")
		case paths[mount.MountPath]:
			return fmt.Errorf("%s.mountPath: found %q twice; expected each path once", at, mount.MountPath)
		case path.IsAbs(mount.SubPath) || slices.Contains(strings.Split(mount.SubPath, "/"), ".."):
			return wrong(at+".subPath", mount.SubPath, "a relative path inside the volume")
		}
		paths[mount.MountPath] = true
	}
	return nil
}

// checkMountPaths returns an error about a mount that gauntlet cannot provide to a program. The API server also accepts
// other paths, such as those of Windows.
func checkMountPaths(spec corev1.PodSpec) error {
	for i, container := range spec.Containers {
		for j, mount := range container.VolumeMounts {
			if !path.IsAbs(mount.MountPath) || path.Clean(mount.MountPath) == "/" {
				at := fmt.Sprintf("spec.template.spec.containers[%d].volumeMounts[%d].mountPath", i, j)
				return wrong(at, mount.MountPath, "an absolute path other than /, because a run mounts the volume for the program")
			}
		}
	}
	return nil
}

// checkContainer returns an error about the ports, probes or environment variables of a container.
func checkContainer(at string, c *corev1.Container) error {
	names := map[string]bool{}
	for i, port := range c.Ports {
		at := fmt.Sprintf("%s.ports[%d]", at, i)
		switch {
		case len(validation.IsValidPortNum(int(port.ContainerPort))) > 0:
			return wrong(at+".containerPort", port.ContainerPort, portRange)
		case port.HostPort != 0 && len(validation.IsValidPortNum(int(port.HostPort))) > 0:
			return wrong(at+".hostPort", port.HostPort, portRange)
		case port.Name != "" && len(validation.IsValidPortName(port.Name)) > 0:
			return wrong(at+".name", port.Name, portName)
		case port.Name != "" && names[port.Name]:
			return fmt.Errorf("%s.name: found %q twice; expected each name once", at, port.Name)
		}
		names[port.Name] = true
	}
	for i, source := range c.EnvFrom {
		at := fmt.Sprintf("%s.envFrom[%d]", at, i)
		if sources := sourcesOf(source); len(sources) != 1 {
			return fmt.Errorf("%s: found %s; expected configMapRef or secretRef", at, cmp.Or(nearest.List(sources, "and"), "no source"))
		}
	}
	for _, probe := range []struct {
		name  string
		probe *corev1.Probe
	}{{"livenessProbe", c.LivenessProbe}, {"startupProbe", c.StartupProbe}} {
		if probe.probe != nil && probe.probe.SuccessThreshold > 1 {
			return wrong(at+"."+probe.name+".successThreshold", probe.probe.SuccessThreshold, "1, or no such field")
		}
	}
	for i, variable := range c.Env {
		if err := checkVariable(fmt.Sprintf("%s.env[%d]", at, i), variable); err != nil {
			return err
		}
	}
	return nil
}

// checkVariable returns an error about an environment variable of a container.
func checkVariable(at string, variable corev1.EnvVar) error {
	if len(validation.IsRelaxedEnvVarName(variable.Name)) > 0 {
		return wrong(at+".name", variable.Name, "the name of an environment variable")
	}
	if variable.ValueFrom == nil {
		return nil
	}
	sources := sourcesOf(*variable.ValueFrom)
	if variable.Value != "" {
		sources = append(sources, "value")
	}
	if len(sources) != 1 {
		return fmt.Errorf("%s: found %s; expected value, or one source in valueFrom", at, cmp.Or(nearest.List(sources, "and"), "an empty valueFrom"))
	}
	if field := variable.ValueFrom.FieldRef; field != nil && !podFields.MatchString(field.FieldPath) {
		return wrong(at+".valueFrom.fieldRef.fieldPath", field.FieldPath, "a field of a pod such as metadata.namespace")
	}
	if kind, name, key, _ := keyOf(variable.ValueFrom); kind != "" && (name == "" || key == "") {
		return fmt.Errorf("%s.valueFrom: found the name %q and the key %q of a %s; expected both", at, name, key, kind)
	}
	return nil
}

// checkProbe returns an error about the handler of a probe.
func checkProbe(at string, probe *corev1.Probe) error {
	handlers := sourcesOf(probe.ProbeHandler)
	if len(handlers) != 1 {
		return fmt.Errorf("%s: found %s; expected one of exec, grpc, httpGet and tcpSocket", at, cmp.Or(nearest.List(handlers, "and"), "no handler"))
	}
	switch {
	case probe.HTTPGet != nil:
		return checkPort(at+".httpGet.port", probe.HTTPGet.Port)
	case probe.TCPSocket != nil:
		return checkPort(at+".tcpSocket.port", probe.TCPSocket.Port)
	}
	return nil
}

// sourcesOf returns the names of the fields that are not nil in a struct. It ignores fields of other types.
func sourcesOf(source any) []string {
	var names []string
	value := reflect.ValueOf(source)
	for i := range value.NumField() {
		if value.Field(i).Kind() == reflect.Pointer && !value.Field(i).IsNil() {
			name, _, _ := strings.Cut(value.Type().Field(i).Tag.Get("json"), ",")
			names = append(names, name)
		}
	}
	return names
}

// checkKeyToPath returns an error about a file of a volume. Its path must be inside the volume.
func checkKeyToPath(at string, item *corev1.KeyToPath) error {
	if item.Key == "" {
		return wrong(at+".key", nil, "a key of the ConfigMap or Secret")
	}
	if item.Path == "" || path.IsAbs(item.Path) || strings.HasPrefix(item.Path, "..") || slices.Contains(strings.Split(item.Path, "/"), "..") {
		return wrong(at+".path", item.Path, "a relative path inside the volume, without ..")
	}
	return checkMode(at+".mode", item.Mode)
}

// checkHostPath returns an error about the path of a file or directory of a node.
func checkHostPath(at string, source *corev1.HostPathVolumeSource) error {
	if source.Path == "" || slices.Contains(strings.Split(source.Path, "/"), "..") {
		return wrong(at+".path", source.Path, "a path without ..")
	}
	return nil
}

// checkSeccomp returns an error about a seccomp profile whose fields contradict each other.
func checkSeccomp(at string, profile *corev1.SeccompProfile) error {
	local := profile.Type == corev1.SeccompProfileTypeLocalhost
	switch {
	case profile.Type == "":
		return wrong(at+".type", nil, nearest.List(knownValues[reflect.TypeOf(profile.Type)], "or"))
	case local && (profile.LocalhostProfile == nil || *profile.LocalhostProfile == ""):
		return wrong(at+".localhostProfile", nil, "the path of a profile, because the type is Localhost")
	case !local && profile.LocalhostProfile != nil && slices.Contains(knownValues[reflect.TypeOf(profile.Type)], string(profile.Type)):
		return wrong(at+".localhostProfile", *profile.LocalhostProfile, "no such field, because only the type Localhost has it")
	}
	return nil
}

// checkSpread returns an error about a constraint for the spread of pods.
func checkSpread(at string, c *corev1.TopologySpreadConstraint) error {
	switch {
	case c.MaxSkew < 1:
		return wrong(at+".maxSkew", c.MaxSkew, "a number of at least 1")
	case c.TopologyKey == "":
		return wrong(at+".topologyKey", nil, "the label of nodes, such as topology.kubernetes.io/zone")
	case c.WhenUnsatisfiable == "":
		return wrong(at+".whenUnsatisfiable", nil, "DoNotSchedule or ScheduleAnyway")
	}
	return nil
}
