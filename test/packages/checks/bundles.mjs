import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { gzipSync } from 'node:zlib'
import { PAGE } from '../../../packages/client/bench/sizes.mjs'
import { TOOL_VERSIONS } from '../programs.mjs'

const HTML = '<!doctype html><script type="module" src="/src/main.js"></script>'
/** As test/docs/client-sizes.test.ts, with what a bundler adds. */
const MAX_GZIP_BYTES = 11.6 * 1_024

function expectBundle(folder) {
  const scripts = readdirSync(folder, { recursive: true }).filter((file) => file.endsWith('.js'))
  const code = scripts.map((file) => readFileSync(path.join(folder, file), 'utf8')).join('')
  if (!code.includes('webmq.v1')) throw new Error(`the client is not in the bundle: ${scripts.join(', ')}`)
  const bytes = gzipSync(code, { level: 9 }).length
  if (bytes > MAX_GZIP_BYTES) throw new Error(`${bytes} bytes compressed`)
  return `${(bytes / 1_024).toFixed(1)} KiB compressed`
}

/** @type {import('../check.mjs').Check[]} */
export const bundleChecks = [
  {
    name: `Vite ${TOOL_VERSIONS.vite} builds a page`,
    limitMs: 180_000,
    async run({ newProject, newestNode }) {
      const project = await newProject('vite', { node: newestNode })
      await project.run('npm', 'install', 'webmq-client', `vite@${TOOL_VERSIONS.vite}`)
      project.write({ 'index.html': HTML, 'src/main.js': PAGE })
      await project.run('npx', 'vite', 'build')
      return expectBundle(path.join(project.folder, 'dist'))
    },
  },
  {
    name: `webpack ${TOOL_VERSIONS.webpack} builds a page`,
    limitMs: 180_000,
    async run({ newProject, newestNode }) {
      const project = await newProject('webpack', { node: newestNode })
      const { webpack, 'webpack-cli': cli } = TOOL_VERSIONS
      await project.run('npm', 'install', 'webmq-client', `webpack@${webpack}`, `webpack-cli@${cli}`)
      project.write({ 'src/index.js': PAGE })
      await project.run('npx', 'webpack', '--mode', 'production')
      return expectBundle(path.join(project.folder, 'dist'))
    },
  },
]
