package operator

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/kube-gauntlet/gauntlet/harness/inputfile"
)

// manifest is an object of a manifest. Its place is, for example, a file and a document.
type manifest struct {
	*unstructured.Unstructured
	place string
}

// readManifests returns the objects in the manifests at a path, which is absolute or relative to the
// directory dir. The path may be:
//
//   - a kustomization file, or a directory that contains one: it is built like `kustomize build`
//   - another file: its documents in YAML or JSON are the manifests
//   - another directory: all its .yaml, .yml and .json files are read, but no subdirectories
func readManifests(dir, path string) ([]manifest, error) {
	if path == "" {
		return nil, errors.New("found an empty text; expected the path of a file or directory")
	}
	if strings.Contains(path, "://") {
		return nil, fmt.Errorf("found the URL %.200s; expected a path: download the manifests, and name the file", path)
	}
	path = within(dir, path)
	info, err := os.Stat(path)
	switch {
	case err != nil && strings.ContainsAny(path, "*?[~$"):
		return nil, fmt.Errorf("%s: %w; expected a path without patterns, ~ and variables: to read all files of a directory, name the directory", path, inputfile.Reason(err))
	case err != nil:
		return nil, fmt.Errorf("%s: %w; expected a file or directory with manifests", path, inputfile.Reason(err))
	case slices.Contains(konfig.RecognizedKustomizationFileNames(), filepath.Base(path)):
		return kustomize(filepath.Dir(path))
	case info.Mode().IsRegular():
		objects, err := readManifest(path)
		if err == nil && len(objects) == 0 {
			return nil, fmt.Errorf("%s: found no object in the file; expected manifests", path)
		}
		return objects, err
	case !info.IsDir():
		return nil, fmt.Errorf("found %s with mode %s; expected a file or a directory", path, info.Mode())
	}
	for _, name := range konfig.RecognizedKustomizationFileNames() {
		if _, err := os.Stat(filepath.Join(path, name)); err == nil {
			return kustomize(path)
		}
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	var objects []manifest
	for _, entry := range entries {
		file := filepath.Join(path, entry.Name())
		if !slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(file)) {
			continue
		}
		if info, err := os.Stat(file); err == nil && info.IsDir() {
			continue
		}
		read, err := readManifest(file)
		if err != nil {
			return nil, err
		}
		objects = append(objects, read...)
	}
	if len(objects) == 0 {
		return nil, fmt.Errorf("found no object in the files of %s; expected files with manifests, or a kustomization", path)
	}
	return objects, nil
}

// kustomize builds the kustomization in a directory, and returns the objects.
func kustomize(dir string) ([]manifest, error) {
	options := krusty.MakeDefaultOptions()
	options.LoadRestrictions = types.LoadRestrictionsNone // files beside the directory are the user's own, too
	built, err := krusty.MakeKustomizer(options).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		return nil, fmt.Errorf("building the kustomization in %s: %s", dir, kustomizeReason(err))
	}
	var objects []manifest
	for _, resource := range built.Resources() {
		// The numbers in resource.Map have types that an Unstructured must not have.
		text, err := resource.MarshalJSON()
		if err != nil {
			return nil, err
		}
		o := &unstructured.Unstructured{}
		if err := o.UnmarshalJSON(text); err != nil {
			return nil, err
		}
		if err := checkManifest(o); err != nil {
			return nil, fmt.Errorf("%s: %w", dir, err)
		}
		objects = append(objects, manifest{o, "the kustomization in " + dir})
	}
	if len(objects) == 0 {
		return nil, fmt.Errorf("the kustomization in %s: found no object; expected files with manifests in the field resources", dir)
	}
	return objects, nil
}

// remotePattern matches the error of kustomize about a resource that is a URL. Kustomize takes the URL
// for the path of a file.
var remotePattern = regexp.MustCompile(`\bhttps?:/|/https?::`)

// nestedPattern matches the error of kustomize about another kustomization in the field resources. The groups
// are the directory of that kustomization, and its error.
var nestedPattern = regexp.MustCompile(`(?s)^accumulating resources: accumulation err='accumulating resources from '[^']*': read [^:]*: is a directory': (?:recursed accumulation of|couldn't make target for) path '([^']*)': (.*)$`)

// directoryPattern matches the errors of kustomize about a directory in the field resources. The group of the
// first form is a directory that contains the kustomization, and that of the second one has no kustomization.
var directoryPattern = regexp.MustCompile(`cycle detected: candidate root '([^']*)'|unable to find one of .* in directory '([^']*)'`)

// accumulatedPattern matches the beginning of an error of kustomize about a file in the field resources.
// The group is the path.
var accumulatedPattern = regexp.MustCompile(`^.*?accumulating resources from '([^']*)': `)

// kustomizeTexts has patterns that match errors of kustomize, and texts that replace them.
var kustomizeTexts = []struct {
	pattern *regexp.Regexp
	text    string
}{
	{regexp.MustCompile(`(?s)^.*\b(?:lstat|open|read) (/[^:]+): ([^:"']+).*$`), "$1: $2"},
	{regexp.MustCompile(`(?s)^.*merging resources from '([^']*)': may not add resource with an already registered id: (\S+?)\.\[noNs\].*$`), "$1: found $2 for the second time; expected each object once"},
	{regexp.MustCompile(`(?:^\S+: )?MalformedYAMLError: (.*) in File: (\S+)`), "$2: $1"},
	{regexp.MustCompile("(?s)^trouble configuring builtin (?:PatchTransformer|PatchStrategicMergeTransformer) with config: `.*?`: "), "the field patches: "},
	{regexp.MustCompile("(?s)^trouble configuring builtin (\\S+) with config: `.*?`: "), "$1: "},
	{regexp.MustCompile(`(?s)^no resource matches strategic merge patch "([^"]*)".*$`), "the field patches: found a patch of $1, but no such object in the resources"},
	{regexp.MustCompile(`(?s)^var '\{(\S+) .*$`), "the field vars: found $1, whose object is not in the resources"},
	{regexp.MustCompile(`(?s)^(.*)unable to parse SM or JSON patch from \[(?:patch: )?(.*)\]$`), "${1}found $2; expected a patch in JSON or YAML: a list of operations such as replace, or a part of a manifest"},
	{regexp.MustCompile(`^nothing selected by (\S+)$`), "the field replacements: found the source $1, but no such object in the resources"},
	{regexp.MustCompile(`\.?\[no(?:Ver|Grp|Ns)\]`), ""}, // parts of the name of an object that the user does not give
	{regexp.MustCompile(`^Failed to read kustomization file under \S+: `), ""},
	{regexp.MustCompile(`(?s)^(?:accumulating components: )?loader\.New "must build at directory: '([^']*)': file is not directory".*$`), "found the file $1; expected a directory with a kustomization"},
	{regexp.MustCompile(`missing kind in object .*$`), "found an object without the field kind; expected the manifest of a Kubernetes object"},
	{regexp.MustCompile(`missing Resource metadata`), "found no object; expected the manifest of a Kubernetes object"},
	{regexp.MustCompile(`^(invalid Kustomization: unknown field .*|found (?:string|number|bool) at .*)$`), "$1; if only an older version of kustomize accepts the kustomization, list its files in subject.manifests instead"},
}

// kustomizeReason returns the text of an error of kustomize, and the next step of the user. For a missing
// file, the error says the same several times; kustomizeReason says it once.
func kustomizeReason(err error) string {
	text := inputfile.JSONReason(err)
	if strings.Contains(text, "HelmChartInflationGenerator") {
		return `found helmCharts, which gauntlet does not support; render the charts with "helm template", and name the results in resources`
	}
	if remotePattern.MatchString(text) {
		return "found the URL of a remote resource; expected files on this machine: download the resource, and name its files in the kustomization"
	}
	if match := directoryPattern.FindStringSubmatch(text); match != nil {
		return fmt.Sprintf("found the directory %s, which has no kustomization, or contains this one; expected a file, or another directory with a kustomization", match[1]+match[2])
	}
	directory := ""
	for match := nestedPattern.FindStringSubmatch(text); match != nil; match = nestedPattern.FindStringSubmatch(text) {
		directory, text = match[1], match[2]
	}
	if match := accumulatedPattern.FindStringSubmatch(text); match != nil {
		text, _, _ = strings.Cut(text[len(match[0]):], "': ") // the rest is why the path is no directory either
		text = match[1] + ": " + text
	}
	for _, known := range kustomizeTexts {
		text = known.pattern.ReplaceAllString(text, known.text)
	}
	if !strings.Contains(text, directory) {
		return directory + ": " + text
	}
	return text
}

// helmPattern matches an action of a Helm template outside of quotation marks.
var helmPattern = regexp.MustCompile(`(?m)^[^"'#\n]*\{\{-?\s*(\.|\$|include|template|if|range|with|define|toYaml|end)`)

// readManifest returns the objects of a YAML or JSON file, which may contain several documents.
// It replaces a List by its items.
func readManifest(path string) ([]manifest, error) {
	content, err := inputfile.ReadText(path)
	if err != nil {
		return nil, err
	}
	decode := documents(content)
	var objects []manifest
	for document := 1; ; document++ {
		var fields map[string]any
		place := fmt.Sprintf("%s, document %d", path, document)
		err := decode(&fields)
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			at, reason := inputfile.Locate(path, content, err, nil)
			if helmPattern.Match(content) {
				reason = `found a Helm template; render it with "helm template" first (` + reason + ")"
			}
			return nil, fmt.Errorf("%s, document %d: expected a manifest: %s", at, document, reason)
		}
		o := &unstructured.Unstructured{Object: fields}
		if len(fields) == 0 {
			continue // a document with only comments
		}
		read, err := objectsOf(o)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", place, err)
		}
		for _, o := range read {
			objects = append(objects, manifest{o, place})
		}
	}
}

// wrongSeparator matches a line that looks like the separator of documents, but has further text.
var wrongSeparator = regexp.MustCompile(`(?m)^---[ \t]*[^#\s].*$`)

// documents returns a function that decodes the next document of a YAML or JSON file. At the end, the
// function returns [io.EOF].
func documents(content []byte) func(into *map[string]any) error {
	const lookAhead = 4096 // bytes that decide whether the file is JSON
	source, _, isJSON := yaml.GuessJSONStream(bytes.NewReader(content), lookAhead)
	if isJSON {
		decoder := yaml.NewYAMLOrJSONDecoder(source, lookAhead)
		return func(into *map[string]any) error { return decoder.Decode(into) }
	}
	reader := yaml.NewYAMLReader(bufio.NewReader(source))
	end := 0 // of the earlier documents
	return func(into *map[string]any) error {
		document, err := reader.Read()
		if err != nil {
			if at := wrongSeparator.FindIndex(content); at != nil && !errors.Is(err, io.EOF) {
				return fmt.Errorf("line %d: found a line that begins with ---; expected only ---, which begins the next document", bytes.Count(content[:at[0]], []byte("\n"))+1)
			}
			return err
		}
		if start := bytes.Index(content[end:], document); start > 0 { // so that errors have the line of the file
			end += start
			document = append(bytes.Repeat([]byte("\n"), bytes.Count(content[:end], []byte("\n"))), document...)
		}
		if bytes.Contains(document, []byte("<<")) { // UnmarshalStrict takes a key that replaces a merged one for a duplicate
			return sigsyaml.Unmarshal(document, into)
		}
		return sigsyaml.UnmarshalStrict(document, into)
	}
}

// objectsOf returns the items of a List, and any other object of a manifest itself. It returns an error
// if the API server would refuse one of them.
func objectsOf(o *unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	objects := []*unstructured.Unstructured{o}
	items, isList := o.Object["items"].([]any)
	switch {
	case o.GetKind() == "List" && !isList:
		return nil, errors.New("items: found no list; expected a list of objects")
	case isList:
		objects = nil
		for i, item := range items {
			fields, ok := item.(map[string]any)
			if !ok {
				return nil, fmt.Errorf("items[%d]: found %.60v; expected an object", i, item)
			}
			read, err := objectsOf(&unstructured.Unstructured{Object: fields})
			if err != nil {
				return nil, fmt.Errorf("items[%d]: %w", i, err)
			}
			objects = append(objects, read...)
		}
		return objects, nil
	}
	for _, o := range objects {
		for _, field := range []struct{ name, value string }{{"kind", o.GetKind()}, {"apiVersion", o.GetAPIVersion()}} {
			if value := o.Object[field.name]; value != nil && field.value == "" {
				return nil, fmt.Errorf("%s: found %s; expected a text such as v1 or ConfigMap", field.name, found(value))
			}
			if field.value == "" {
				return nil, fmt.Errorf("found an object without the field %s; expected a Kubernetes manifest", field.name)
			}
		}
		if _, err := schema.ParseGroupVersion(o.GetAPIVersion()); err != nil {
			return nil, fmt.Errorf("%s %s: apiVersion: found %.80q; expected a group and a version such as apps/v1, or v1", o.GetKind(), o.GetName(), o.GetAPIVersion())
		}
		if err := checkManifest(o); err != nil {
			return nil, err
		}
	}
	return objects, nil
}
