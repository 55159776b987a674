import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { parseAllDocuments, parse as parseYaml } from 'yaml'

/** The repository, with a slash at its end. */
export const ROOT = fileURLToPath(new URL('../../', import.meta.url))

export function readText(file: string): string {
  return readFileSync(ROOT + file, 'utf8')
}

// biome-ignore lint/suspicious/noExplicitAny: the tests read files of many shapes, and fail where they are not as expected
export type Tree = any

export function readJson(file: string): Tree {
  return JSON.parse(readText(file))
}

/** Reads YAML 1.2 with merge keys, as Compose does. */
export function readYaml(file: string): Tree {
  return parseYaml(readText(file), { merge: true })
}

/** All documents of a stream, as `kubectl` reads it. */
export function parseDocuments(text: string): Tree[] {
  return parseAllDocuments(text).flatMap((document) => document.toJS() ?? [])
}
