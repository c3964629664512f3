package operator

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/kube-gauntlet/gauntlet/harness/nearest"
)

// podFields matches the fields of a pod that an environment variable may have as its value.
var podFields = regexp.MustCompile(`^(metadata\.(name|namespace|uid|(labels|annotations)\['[^']+'\])|spec\.(nodeName|serviceAccountName)|status\.(hostIPs?|podIPs?))$`)

// fieldValues has the templates for those fields of a pod that a local process has.
var fieldValues = map[string]string{"metadata.namespace": "{{.Namespace}}", "metadata.name": "{{.Replica}}", "status.podIP": "{{.Address}}"}

// environment returns the environment variables of the program, as templates. They are those of the
// container, and those in the argument set, which take precedence. It leaves out the variables with the
// connection to the API server, which a run sets itself.
//
// The result missing has what a pod would need, but a local process cannot get. An example is
// "variable TOKEN", whose value is in a Secret outside of the manifests.
func (s *objects) environment(set map[string]string) (env map[string]string, missing []string) {
	env = map[string]string{}
	for _, source := range s.sources {
		missing = append(missing, s.addSource(env, source)...)
	}
	for _, variable := range s.variables { // of two variables with the same name, the last one counts
		value, known, optional := s.valueOf(variable)
		delete(env, variable.Name)
		if known {
			env[variable.Name] = inCertificates(value, s.certificates)
		} else if _, isSet := set[variable.Name]; !isSet && !optional {
			missing = append(missing, "variable "+variable.Name+s.lack(variable.ValueFrom))
		}
	}
	for _, name := range addresses {
		delete(env, name)
	}
	maps.Copy(env, set)
	return env, missing
}

// addSource adds the values of a ConfigMap or Secret to the environment variables. If the manifests do not
// contain it, and a pod would need it, the result names it.
func (s *objects) addSource(env map[string]string, source corev1.EnvFromSource) (missing []string) {
	kind, name, optional := "", "", false
	switch {
	case source.ConfigMapRef != nil:
		kind, name, optional = "ConfigMap", source.ConfigMapRef.Name, isTrue(source.ConfigMapRef.Optional)
	case source.SecretRef != nil:
		kind, name, optional = "Secret", source.SecretRef.Name, isTrue(source.SecretRef.Optional)
	default:
		return nil
	}
	data := s.dataOf(kind, name)
	if data == nil && !optional {
		return []string{"variables of envFrom (" + s.absent(kind, name) + ")"}
	}
	for key, value := range data {
		env[source.Prefix+key] = inCertificates(templateOf(value), s.certificates)
	}
	return nil
}

// valueOf returns the value of an environment variable as a template, such as "{{.Namespace}}". The result
// known is false if the value is that of another field, or of a ConfigMap or Secret outside of the
// manifests. The result optional says whether a pod starts without the value.
func (s *objects) valueOf(variable corev1.EnvVar) (value string, known, optional bool) {
	from := variable.ValueFrom
	switch {
	case from == nil:
		return variable.Value, true, false
	case from.FieldRef != nil:
		value, known = fieldValues[from.FieldRef.FieldPath]
	default:
		kind, name, key, isOptional := keyOf(from)
		value, known = s.dataOf(kind, name)[key]
		value, optional = templateOf(value), isOptional
	}
	return value, known, optional
}

// keyOf returns the ConfigMap or Secret, and the key there, with the value of a variable. All results are
// empty for other variables. The result optional says whether a pod starts without the value.
func keyOf(from *corev1.EnvVarSource) (kind, name, key string, optional bool) {
	if ref := from.ConfigMapKeyRef; ref != nil {
		return "ConfigMap", ref.Name, ref.Key, isTrue(ref.Optional)
	}
	if ref := from.SecretKeyRef; ref != nil {
		return "Secret", ref.Name, ref.Key, isTrue(ref.Optional)
	}
	return "", "", "", false
}

// lack says why a variable has no value. Its ConfigMap or Secret is not in the manifests, or has no such
// key. The result is "" for other variables.
func (s *objects) lack(from *corev1.EnvVarSource) string {
	kind, name, key, _ := keyOf(from)
	data := s.dataOf(kind, name)
	switch {
	case kind == "":
		return ""
	case data == nil:
		return fmt.Sprintf(" (%s)", s.absent(kind, name))
	}
	return fmt.Sprintf(" (%s %s has no key %s%s)", kind, name, key, nearest.Suggestion(key, slices.Collect(maps.Keys(data))))
}

// absent says that a ConfigMap or Secret is not in the manifests. It suggests one with a similar name, or the
// namespace of one with this name.
func (s *objects) absent(kind, name string) string {
	var names []string
	for _, o := range s.install {
		switch {
		case o.GetKind() == kind && o.GetName() == name:
			return fmt.Sprintf("%s %s is in the namespace %s instead of %s", kind, name, o.GetNamespace(), s.namespace)
		case o.GetKind() == kind:
			names = append(names, o.GetName())
		}
	}
	return fmt.Sprintf("%s %s is not in the manifests%s", kind, name, nearest.Suggestion(name, names))
}

// isTrue reports whether an optional field is set to true.
func isTrue(field *bool) bool { return field != nil && *field }

// arguments returns the arguments of the program, as templates. They are those of the container with the
// given environment variables. The program listens on the address of its replica, and connects to the fault
// proxy.
func (s *objects) arguments(env map[string]string) []string {
	var args []string
	for _, arg := range s.args {
		for _, name := range slices.Sorted(maps.Keys(env)) {
			arg = strings.ReplaceAll(arg, "$("+name+")", env[name])
		}
		args = append(args, inCertificates(listenOnReplicaAddress(arg), s.certificates))
	}
	return toProxy(args)
}
