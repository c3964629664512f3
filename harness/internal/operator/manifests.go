package operator

import (
	"bufio"
	"bytes"
	"encoding/json"
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
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/kube-gauntlet/gauntlet/harness/inputfile"
)

// manifest is an object of a manifest. Its place is a file and a line, or a kustomization.
type manifest struct {
	*unstructured.Unstructured
	place    string
	document *document        // nil for an object of a kustomization
	resource func() *document // finds the resource of a kustomization from which the object comes
	inside   string           // path of the object in the document, such as items[0]
	notes    []string         // mistakes in its kustomization that do not change a run
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
		return nil, fmt.Errorf("%s: found %s; expected a file or a directory", path, inputfile.Describe(info.Mode()))
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

// helmPattern matches an action of a Helm template outside of quotation marks.
var helmPattern = regexp.MustCompile(`(?m)^[^"'#\n]*\{\{-?\s*(\.|\$|include|template|if|range|with|define|toYaml|end)`)

// readManifest returns the objects of a YAML or JSON file, which may contain several documents.
// It replaces a List by its items.
func readManifest(path string) ([]manifest, error) {
	content, err := inputfile.ReadText(path)
	if err != nil {
		return nil, err
	}
	decode := documents(path, content)
	var objects []manifest
	for {
		var fields map[string]any
		read, err := decode(&fields)
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			at, reason := inputfile.Locate(path, content, err, nil)
			if helmPattern.Match(content) {
				reason = `found a Helm template; render it with "helm template" first (` + reason + ")"
			}
			if at == path && read != nil {
				at = read.place()
			}
			return nil, fmt.Errorf("%s: expected a manifest: %s", at, reason)
		}
		o := &unstructured.Unstructured{Object: fields}
		if len(fields) == 0 {
			continue // a document with only comments
		}
		if fields["kind"] == nil { // only then, because Mistaken reads the whole file
			if mistaken := inputfile.Mistaken(content, "a Kubernetes manifest"); mistaken != nil {
				return nil, fmt.Errorf("%s: %w", path, mistaken)
			}
		}
		found, err := objectsOf(manifest{Unstructured: o, place: read.place(), document: read})
		if err != nil {
			return nil, manifest{document: read}.mistake(err)
		}
		objects = append(objects, found...)
	}
}

// wrongSeparator matches a line that looks like the separator of documents, but has further text.
var wrongSeparator = regexp.MustCompile(`(?m)^---[ \t]*[^#\s].*$`)

// documents returns a function that decodes the next document of a file in YAML or JSON. At the end, the
// function returns [io.EOF].
func documents(path string, content []byte) func(into *map[string]any) (*document, error) {
	content = append(bytes.TrimSuffix(bytes.ReplaceAll(content, []byte("\r\n"), []byte("\n")), []byte("\n")), '\n')
	const lookAhead = 4096 // bytes that decide whether the file is JSON
	source, _, isJSON := yaml.GuessJSONStream(bytes.NewReader(content), lookAhead)
	if isJSON {
		return jsonDocuments(path, content, yaml.NewYAMLOrJSONDecoder(source, lookAhead))
	}
	reader := yaml.NewYAMLReader(bufio.NewReader(source))
	end, lines := 0, 0 // of the earlier documents
	return func(into *map[string]any) (*document, error) {
		text, err := reader.Read()
		if err != nil {
			if at := wrongSeparator.FindIndex(content); at != nil && !errors.Is(err, io.EOF) {
				return nil, fmt.Errorf("line %d: found a line that begins with ---; expected only ---, which begins the next document", bytes.Count(content[:at[0]], []byte("\n"))+1)
			}
			return nil, err
		}
		if start := bytes.Index(content[end:], text); start >= 0 {
			lines += bytes.Count(content[end:end+start], []byte("\n"))
			end += start
		}
		read := &document{path: path, text: text, line: lines}
		padded := append(bytes.Repeat([]byte("\n"), lines), text...) // so that errors have the line of the file
		lines += bytes.Count(text, []byte("\n"))
		end += len(text)
		if bytes.Contains(text, []byte("<<")) { // UnmarshalStrict takes a key that replaces a merged one for a duplicate
			return read, sigsyaml.Unmarshal(padded, into)
		}
		return read, sigsyaml.UnmarshalStrict(padded, into)
	}
}

// jsonDocuments returns a function as documents does, for a file in JSON. The decoder reads the content of the file.
func jsonDocuments(path string, content []byte, decoder *yaml.YAMLOrJSONDecoder) func(into *map[string]any) (*document, error) {
	texts := json.NewDecoder(bytes.NewReader(content))
	rest := content
	return func(into *map[string]any) (*document, error) {
		if err := decoder.Decode(into); err != nil {
			return nil, err
		}
		var text json.RawMessage
		if texts.Decode(&text) != nil { // YAML may begin with a brace, too
			return &document{path: path, text: rest}, nil
		}
		rest = nil
		start := int(texts.InputOffset()) - len(text)
		first := bytes.LastIndexByte(content[:start], '\n') + 1
		blank := bytes.Repeat([]byte(" "), start-first) // so that positions have the column of the file
		return &document{path: path, text: append(blank, text...), line: bytes.Count(content[:start], []byte("\n"))}, nil
	}
}

// objectsOf returns the items of a List, and any other object of a manifest itself. It returns an error
// if the API server would refuse one of them.
func objectsOf(m manifest) ([]manifest, error) {
	items, isList := m.Object["items"].([]any)
	switch {
	case m.GetKind() == "List" && !isList:
		return nil, errors.New("items: found no list; expected a list of objects")
	case !isList:
		return []manifest{m}, checkObject(m.Unstructured)
	}
	var objects []manifest
	for i, item := range items {
		fields, ok := item.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("items[%d]: found %.60v; expected an object", i, item)
		}
		inner := m
		inner.Unstructured, inner.inside = &unstructured.Unstructured{Object: fields}, fmt.Sprintf("%s.items[%d]", m.inside, i)
		read, err := objectsOf(inner)
		if err != nil {
			return nil, fmt.Errorf("items[%d]: %w", i, err)
		}
		objects = append(objects, read...)
	}
	return objects, nil
}

// checkObject returns an error about an object that the API server would refuse, or that lacks its kind or version.
func checkObject(o *unstructured.Unstructured) error {
	for _, field := range []struct{ name, value string }{{"kind", o.GetKind()}, {"apiVersion", o.GetAPIVersion()}} {
		if value := o.Object[field.name]; value != nil && field.value == "" {
			return fmt.Errorf("%s: found %s; expected a text such as v1 or ConfigMap", field.name, found(value))
		}
		if field.value == "" {
			return fmt.Errorf("found an object without the field %s; expected a Kubernetes manifest", field.name)
		}
	}
	if _, err := schema.ParseGroupVersion(o.GetAPIVersion()); err != nil {
		return fmt.Errorf("%s %s: apiVersion: found %.80q; expected a group and a version such as apps/v1, or v1", o.GetKind(), o.GetName(), o.GetAPIVersion())
	}
	return checkManifest(o)
}
