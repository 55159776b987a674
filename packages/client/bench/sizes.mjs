import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { gzipSync } from 'node:zlib'
import { build } from 'esbuild'
import { build as viteBuild } from 'vite'
import { ROOT } from '../../../scripts/lib/steps.mjs'

const CLIENT = path.join(ROOT, 'packages/client')

/** Of frameworks and libraries that an app has anyway. */
const PEERS = ['react', 'react-dom', 'vue', 'svelte', 'yjs', 'y-protocols', 'lib0', 'msgpackr']
/** Built on other parts: their own bytes are those beyond all others. */
const UPPER = ['./react', './vue', './svelte', './yjs']
/** Not measured as a whole: tests, the whole protocol, and what is measured by its names. */
const NOT_IN_APPS = ['.', './development', './package.json', './parts', './testing', './protocol', './vite']

/** Of `webmq-client/parts`, by the name of each in docs/client.md: an app has those that it imports. */
const PARTS = {
  concurrently: ['concurrently'],
  history: ['history'],
  iterate: ['iterate'],
  latest: ['latest'],
  loaded: ['loaded'],
  presence: ['presence'],
  request: ['request', 'respond', 'work'],
  savedPositions: ['savedPositions'],
  state: ['state', 'remove'],
}

/** A page that listens and publishes. */
export const PAGE = `
import { setup, listen, publish } from 'webmq-client'
setup({ url: '/ws' })
listen('chat.*', (payload, { key }) => document.body.append(key, JSON.stringify(payload)))
publish('chat.1', { text: 'hi' }).catch(console.error)
`

const HTML = '<!doctype html><script type="module" src="/main.js"></script>'

const ESBUILD = {
  bundle: true,
  minify: true,
  platform: 'browser',
  target: 'es2022',
  write: false,
  metafile: true,
  define: { 'process.env.NODE_ENV': '"production"' },
  logLevel: 'error',
}

/** What loads a page before it runs: each file's code by its name, and what that imports at once. */
const BUNDLERS = {
  async Vite(folder) {
    const { NODE_ENV } = process.env
    // A test runner's own value would choose the build for development.
    process.env.NODE_ENV = 'production'
    const options = { root: folder, logLevel: 'error', configFile: false, build: { write: false } }
    const { output } = await viteBuild(options).finally(() => Object.assign(process.env, { NODE_ENV: NODE_ENV ?? '' }))
    const chunks = output.filter(({ type }) => type === 'chunk')
    return {
      entry: chunks.find(({ isEntry }) => isEntry).fileName,
      files: new Map(chunks.map(({ fileName, code, imports }) => [fileName, { code, imports }])),
    }
  },
  esbuild: (folder) => esbuildPage(folder, { splitting: true, format: 'esm' }),
  'one file': (folder) => esbuildPage(folder, { format: 'iife' }),
}

async function esbuildPage(folder, options) {
  const { outputFiles, metafile } = await build({
    ...ESBUILD,
    ...options,
    absWorkingDir: folder,
    entryPoints: ['main.js'],
    outdir: 'out',
  })
  const codes = new Map(outputFiles.map((file) => [path.relative(folder, file.path), file.text]))
  const files = Object.entries(metafile.outputs).map(([name, { imports }]) => [
    name,
    {
      code: codes.get(name),
      imports: imports.filter(({ kind }) => kind === 'import-statement').map((one) => one.path),
    },
  ])
  return { entry: path.join('out', 'main.js'), files: new Map(files) }
}

async function webpackPage(folder) {
  const webpack = createRequire(path.join(folder, 'main.js'))('webpack')
  const output = { path: path.join(folder, 'out') }
  const stats = await new Promise((resolve, reject) =>
    webpack({ mode: 'production', context: folder, entry: './main.js', output }, (error, result) =>
      error || result.hasErrors() ? reject(error ?? new Error(result.toString())) : resolve(result),
    ),
  )
  const { assets } = stats.toJson().entrypoints.main
  const files = assets.map(({ name }) => [name, { code: readFileSync(path.join(output.path, name)), imports: [] }])
  return { entry: 'main.js', files: new Map(files) }
}

/**
 * Bytes that a page loads before it runs, by bundler: all of its initial JavaScript, nothing external, gzip -9.
 * @param {string} code of the page's module
 * @param {string} modules the folder `node_modules` with what it imports; with webpack in it, webpack is measured too
 * @returns {Promise<Record<string, number>>}
 */
export async function loadedBytes(code, modules, { withWebpack = false } = {}) {
  const folder = mkdtempSync(path.join(tmpdir(), 'webmq-page-'))
  try {
    symlinkSync(modules, path.join(folder, 'node_modules'))
    writeFileSync(path.join(folder, 'package.json'), '{ "private": true, "type": "module" }')
    writeFileSync(path.join(folder, 'main.js'), code)
    writeFileSync(path.join(folder, 'index.html'), HTML)
    const bytes = {}
    for (const [name, bundle] of Object.entries({ ...BUNDLERS, ...(withWebpack && { webpack: webpackPage }) })) {
      bytes[name] = initialBytes(await bundle(folder))
    }
    return bytes
  } finally {
    rmSync(folder, { recursive: true })
  }
}

function initialBytes({ entry, files }) {
  const loaded = new Set([entry])
  let bytes = 0
  for (const name of loaded) {
    const { code, imports } = files.get(name)
    bytes += gzipSync(code, { level: 9 }).length
    for (const one of imports) loaded.add(one)
  }
  return bytes
}

/** What a page loads that uses the built client. */
export const ownLoadedBytes = () => loadedBytes(PAGE, path.join(ROOT, 'node_modules'))

/** Minified, as one file: what an app gets that uses an import. */
function bundle(code, external) {
  return build({
    ...ESBUILD,
    stdin: { contents: code, resolveDir: CLIENT },
    format: 'esm',
    outfile: 'bundle.js',
    external,
  })
}

async function bundledBytes(code, external) {
  const { outputFiles } = await bundle(code, external)
  return gzipSync(outputFiles[0].contents, { level: 9 }).length
}

/**
 * The sizes of the built client: what a page with its core loads in Vite, and what each part adds to the core.
 * @returns {Promise<{ name: string, bytes: number }[]>} `name` of the entry, or of what `webmq-client/parts` exports.
 */
export async function clientSizes() {
  const { exports } = JSON.parse(readFileSync(path.join(CLIENT, 'package.json'), 'utf8'))
  const external = PEERS.flatMap((name) => [name, `${name}/*`])
  const core = "export * from 'webmq-client'"
  const coreBytes = await bundledBytes(core, external)
  const parts = Object.entries(PARTS).map(([name, names]) => ({
    name,
    code: `export { ${names.join(', ')} } from 'webmq-client/parts'`,
    isUpper: false,
  }))
  for (const entry of Object.keys(exports).filter((entry) => !NOT_IN_APPS.includes(entry))) {
    const name = `webmq-client/${entry.slice(2)}`
    const { metafile } = await bundle(`export * from '${name}'`, external)
    // By their names, because an object for all exports of a module costs bytes.
    const names = metafile.outputs['bundle.js'].exports.map((own) => `${own} as ${entry.slice(2)}_${own}`)
    parts.push({ name, code: `export { ${names.join(', ')} } from '${name}'`, isUpper: UPPER.includes(entry) })
  }
  const lower = [core, ...parts.filter(({ isUpper }) => !isUpper).map(({ code }) => code)].join('\n')
  const lowerBytes = await bundledBytes(lower, external)
  const sizes = parts.map(async ({ name, code, isUpper }) => {
    const [before, beforeBytes] = isUpper ? [lower, lowerBytes] : [core, coreBytes]
    return { name, bytes: (await bundledBytes(`${before}\n${code}`, external)) - beforeBytes }
  })
  const { Vite: bytes } = await ownLoadedBytes()
  return [{ name: 'webmq-client', bytes }, ...(await Promise.all(sizes))]
}

const HOOKS = ['useMessages', 'usePublish', 'useStatus']

/**
 * Bytes that three typed hooks add to an app with the core and React.
 * @returns {Promise<{ one: number, all: number }>} `one` by one, with `of`; with `createHooks`, which has `all`.
 */
export async function typedHookBytes() {
  const app = "import { setup } from 'webmq-client'\nexport const client = setup({ url: '/ws' })\n"
  const one = HOOKS.map((name) => `export const ${name} = webmq.${name}.of(client)`).join('\n')
  const all = `export const { ${HOOKS} } = webmq.createHooks(client)`
  const bytes = (code) => bundledBytes(`${app}${code}`, ['react'])
  const added = async (code) =>
    (await bytes(`import * as webmq from 'webmq-client/react'\n${code}`)) - (await bytes(''))
  return { one: await added(one), all: await added(all) }
}

/** @param {number} bytes */
export function kib(bytes) {
  return (bytes / 1_024).toFixed(1)
}
