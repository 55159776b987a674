import { gzipSync } from 'node:zlib'
import { build } from 'esbuild'
import { expect, it } from 'vitest'

/** Size for apps: everything but `webmq-client/testing` and the server's half of the protocol. */
const MAX_GZIP_BYTES = 12_288

async function bundle(): Promise<Uint8Array> {
  const { outputFiles } = await build({
    entryPoints: [new URL('../src/index.ts', import.meta.url).pathname],
    bundle: true,
    minify: true,
    format: 'esm',
    platform: 'neutral',
    target: 'es2022',
    write: false,
  })
  const [file] = outputFiles
  if (!file) throw new Error('esbuild made no file')
  return file.contents
}

it('fits into its budget, minified and compressed', async () => {
  const { length } = gzipSync(await bundle(), { level: 9 })
  expect(length).toBeLessThanOrEqual(MAX_GZIP_BYTES)
})

it('uses no Node API, and imports nothing', async () => {
  const text = new TextDecoder().decode(await bundle())
  expect(text).not.toMatch(/\b(Buffer|process|require|__dirname|setImmediate)\b/)
  expect(text).not.toMatch(/\bimport\b/)
})
