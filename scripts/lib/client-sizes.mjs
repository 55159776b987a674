import { readFileSync } from 'node:fs'
import path from 'node:path'
import { gzipSync } from 'node:zlib'
import { build } from 'esbuild'
import { ROOT } from './steps.mjs'

const CLIENT = path.join(ROOT, 'packages/client')

/** Loaded by the client when it needs them. */
const LATER = ['sse/fallback', 'connection/refusal', 'connection/token-defect'].map((module) =>
  path.join(CLIENT, 'dist', `${module}.js`),
)
/** Of frameworks and libraries that an app has anyway. */
const PEERS = ['react', 'react-dom', 'vue', 'svelte', 'yjs', 'y-protocols', 'lib0', 'msgpackr']
/** Built on other parts: their own bytes are those beyond all others. */
const UPPER = ['./react', './vue', './svelte', './yjs']
/** Not for apps: tests, and the whole protocol. */
const NOT_IN_APPS = ['.', './package.json', './testing', './protocol']

/**
 * Bytes of what an app gets that uses an import: esbuild, minified, ES2022, for browsers, gzip -9.
 * @param {string} code of an ES module
 * @param {string} folder from where it imports
 */
export async function bundledBytes(code, folder, external = []) {
  const { outputFiles } = await bundle(code, folder, external)
  return gzipSync(outputFiles[0].contents, { level: 9 }).length
}

function bundle(code, folder, external) {
  return build({
    stdin: { contents: code, resolveDir: folder },
    bundle: true,
    minify: true,
    format: 'esm',
    platform: 'browser',
    target: 'es2022',
    outfile: 'bundle.js',
    write: false,
    metafile: true,
    external,
    define: { 'process.env.NODE_ENV': '"production"' },
    logLevel: 'error',
  })
}

/**
 * The sizes of the built client: of its core, and of each part beyond the core.
 * @returns {Promise<{ name: string, bytes: number }[]>} `name` as it is imported.
 */
export async function clientSizes() {
  const { exports } = JSON.parse(readFileSync(path.join(CLIENT, 'package.json'), 'utf8'))
  const external = [...LATER, ...PEERS.flatMap((name) => [name, `${name}/*`])]
  const core = "export * from 'webmq-client'"
  const coreBytes = await bundledBytes(core, CLIENT, external)
  const parts = []
  for (const entry of Object.keys(exports).filter((entry) => !NOT_IN_APPS.includes(entry))) {
    const name = `webmq-client/${entry.slice(2)}`
    const { metafile } = await bundle(`export * from '${name}'`, CLIENT, external)
    // By their names, because an object for all exports of a module costs bytes.
    const names = metafile.outputs['bundle.js'].exports.map((own) => `${own} as ${entry.slice(2)}_${own}`)
    parts.push({ name, code: `export { ${names.join(', ')} } from '${name}'`, isUpper: UPPER.includes(entry) })
  }
  const lower = [core, ...parts.filter(({ isUpper }) => !isUpper).map(({ code }) => code)].join('\n')
  const lowerBytes = await bundledBytes(lower, CLIENT, external)
  const sizes = parts.map(async ({ name, code, isUpper }) => {
    const [before, beforeBytes] = isUpper ? [lower, lowerBytes] : [core, coreBytes]
    return { name, bytes: (await bundledBytes(`${before}\n${code}`, CLIENT, external)) - beforeBytes }
  })
  return [{ name: 'webmq-client', bytes: coreBytes }, ...(await Promise.all(sizes))]
}

/** @param {number} bytes */
export function kib(bytes) {
  return (bytes / 1_024).toFixed(1)
}
