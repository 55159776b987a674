import { readdirSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('../../../', import.meta.url))
const PRUNED = ['node_modules', 'dist', 'target', 'build', '.git']

/** A file of the repository and its text. */
export interface SourceFile {
  /** Path from the root of the repository. */
  readonly path: string
  readonly text: string
}

/** A file by its path from the root of the repository. */
export function readSource(path: string): SourceFile {
  return { path, text: readFileSync(join(ROOT, path), 'utf8') }
}

/** All files below `packages` with one of the suffixes, except generated ones. */
export function findSources(...suffixes: readonly string[]): readonly SourceFile[] {
  return walk(join(ROOT, 'packages'))
    .filter((path) => suffixes.some((suffix) => path.endsWith(suffix)))
    .map((path) => readSource(relative(ROOT, path)))
}

function walk(folder: string): readonly string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    if (PRUNED.includes(entry.name)) return []
    const path = join(folder, entry.name)
    return entry.isDirectory() ? walk(path) : [path]
  })
}
