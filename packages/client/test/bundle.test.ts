import { gzipSync } from 'node:zlib'
import { build } from 'esbuild'
import { expect, it } from 'vitest'

/** Size for apps: everything but `webmq-client/testing` and the server's half of the protocol. */
const MAX_GZIP_BYTES = 13_824

/** Modules that are loaded when they are needed, and import nothing. */
const LATER = ['refusal', 'token-defect']

const MAX_LATER_GZIP_BYTES = 1_024

interface Bundled {
  readonly entry: Uint8Array
  /** Files that the entry loads when it needs them, by name. */
  readonly later: ReadonlyMap<string, Uint8Array>
  /** Files that the entry imports before it runs. */
  readonly imports: readonly string[]
}

async function bundle(): Promise<Bundled> {
  const { outputFiles, metafile } = await build({
    entryPoints: [new URL('../src/index.ts', import.meta.url).pathname],
    bundle: true,
    splitting: true,
    minify: true,
    format: 'esm',
    platform: 'neutral',
    target: 'es2022',
    write: false,
    metafile: true,
    outdir: '/bundle',
    chunkNames: '[name]',
  })
  const contents = new Map(
    outputFiles.map(({ path, contents }) => [/(\w[\w-]*)\.js$/.exec(path)?.[1] ?? path, contents]),
  )
  const entry = contents.get('index')
  if (!entry) throw new Error('esbuild made no entry')
  contents.delete('index')
  const imports = Object.values(metafile.outputs).flatMap((output) =>
    output.imports.filter(({ kind }) => kind === 'import-statement').map(({ path }) => path),
  )
  return { entry, later: contents, imports }
}

const gzipBytes = (file: Uint8Array) => gzipSync(file, { level: 9 }).length

it('fits into its budget, minified and compressed', async () => {
  const { entry } = await bundle()
  expect(gzipBytes(entry)).toBeLessThanOrEqual(MAX_GZIP_BYTES)
})

it('loads only explanations later, each of them small', async () => {
  const { later } = await bundle()
  expect([...later.keys()].toSorted()).toEqual(LATER)
  for (const file of later.values()) expect(gzipBytes(file)).toBeLessThanOrEqual(MAX_LATER_GZIP_BYTES)
})

it('uses no Node API, and imports nothing', async () => {
  const { entry, later, imports } = await bundle()
  for (const file of [entry, ...later.values()]) {
    expect(new TextDecoder().decode(file)).not.toMatch(/\b(Buffer|process|require|__dirname|setImmediate)\b/)
  }
  expect(imports).toEqual([])
})
