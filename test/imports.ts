import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('../', import.meta.url))
const PRODUCT = /^packages\/[\w-]+\/src\/(?!.*(\.test(-d)?\.ts$|\/test\/|\/fuzz\/)).*\.ts$/
const IMPORT = /\b(?:from|import)\s*\(?\s*'(\.[^']+)'/g

/** For each product file, the files of the repository that it imports, types included. */
export type Imports = ReadonlyMap<string, readonly string[]>

export function productImports(): Imports {
  const listed = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard', 'packages'], {
    cwd: ROOT,
    encoding: 'utf8',
  })
  const files = listed.split('\n').filter((file) => PRODUCT.test(file) && existsSync(ROOT + file))
  const known = new Set(files)
  return new Map(
    files.map((file) => {
      const paths = [...readFileSync(ROOT + file, 'utf8').matchAll(IMPORT)].map(([, name = '']) =>
        path.posix.join(path.posix.dirname(file), name).replace(/\.js$/, '.ts'),
      )
      return [file, [...new Set(paths)].filter((to) => known.has(to) && to !== file)]
    }),
  )
}

/** Groups of files that reach each other by imports (Tarjan), in the order of their names. */
export function circlesOf(imports: Imports): string[][] {
  const indexes = new Map<string, number>()
  const lows = new Map<string, number>()
  const open: string[] = []
  const circles: string[][] = []
  const visit = (file: string): number => {
    const index = indexes.size
    indexes.set(file, index)
    lows.set(file, index)
    open.push(file)
    for (const to of imports.get(file) ?? []) {
      const reached = indexes.has(to) ? (open.includes(to) ? (indexes.get(to) ?? 0) : index) : visit(to)
      lows.set(file, Math.min(lows.get(file) ?? 0, reached))
    }
    const low = lows.get(file) ?? index
    if (low === index) {
      const circle = open.splice(open.indexOf(file))
      if (circle.length > 1) circles.push(circle.sort())
    }
    return low
  }
  for (const file of imports.keys()) if (!indexes.has(file)) visit(file)
  return circles.sort(([a = ''], [b = '']) => (a < b ? -1 : 1))
}

/** Files outside `folder`, in its package, that import one of its files. */
export function importersOf(folder: string, imports: Imports): string[] {
  return [...imports].flatMap(([file, to]) =>
    !file.startsWith(folder) && to.some((name) => name.startsWith(folder)) ? [file] : [],
  )
}
