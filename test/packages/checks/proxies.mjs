import { createServer } from 'node:net'
import { readerOf } from '../../docs/readers.mjs'
import { TOOL_VERSIONS } from '../programs.mjs'
import { expectHello } from './client.mjs'

const { exampleOf } = readerOf('test/packages/checks/proxies.mjs')
const DOCUMENTED_TARGET = 'http://127.0.0.1:8080'

/** A message through the proxy, with the `Origin` that a page of the dev server has: webpack's refuses others. */
const TRIAL = `
import { WebMQClient } from 'webmq-client'
import { WebSocket } from 'ws'

const origin = process.argv[2]
const client = new WebMQClient({
  url: origin.replace('http', 'ws') + '/ws',
  WebSocket: class extends WebSocket {
    constructor(url, protocols) {
      super(url, protocols, { origin })
    }
  },
})
const heard = new Promise((resolve) => client.listen('trial.1', resolve))
await client.publish('trial.1', { text: 'hello' })
console.log('heard ' + (await heard).text)
await client.close()
`

/** Projects with the lines of docs/client/proxy.md. `serve` starts the dev server at a port; `ready` is what it prints. */
const DEV_SERVERS = [
  {
    name: 'Next',
    packages: ['next'],
    others: ['react@19', 'react-dom@19'],
    config: exampleOf('client/proxy.md', 'next').code,
    written: 'next.config.mjs',
    files: {
      'app/layout.jsx': 'export default ({ children }) => <html><body>{children}</body></html>',
      'app/page.jsx': 'export default () => <p>page</p>',
    },
    ready: /Ready in/,
    serve: (port) => ['next', 'dev', '--port', port],
  },
  {
    name: 'Nuxt',
    packages: ['nuxt'],
    others: [],
    config: exampleOf('client/proxy.md', 'nuxt').code,
    written: 'nuxt.config.ts',
    files: { 'app/app.vue': '<template><p>page</p></template>' },
    ready: /Nitro server built/,
    serve: (port) => ['nuxt', 'dev', '--port', port],
  },
  {
    name: 'webpack',
    packages: ['webpack-dev-server', 'webpack', 'webpack-cli'],
    others: [],
    config: exampleOf('client/proxy.md', 'webpack').code,
    written: 'webpack.config.js',
    files: { 'src/index.js': 'document.title = "page"' },
    ready: /compiled successfully/,
    serve: (port) => ['webpack', 'serve', '--mode', 'development', '--port', port],
  },
]

function freePort() {
  return new Promise((resolve, reject) => {
    const server = createServer()
    server.once('error', reject)
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address()
      server.close(() => resolve(String(port)))
    })
  })
}

/** @type {import('../check.mjs').Check[]} */
export const proxyChecks = DEV_SERVERS.map(({ name, packages, others, config, written, files, ready, serve }) => ({
  name: `${name} ${TOOL_VERSIONS[packages[0]]} passes /ws on`,
  limitMs: 300_000,
  async run({ newProject, newestNode, server }) {
    const project = await newProject(`proxy-${packages[0]}`, { node: newestNode })
    const versions = [...packages, 'ws'].map((tool) => `${tool}@${TOOL_VERSIONS[tool]}`)
    await project.run('npm', 'install', 'webmq-client', ...versions, ...others)
    const target = new URL(server.url.replace('ws', 'http')).origin
    project.write({ ...files, [written]: config.replaceAll(DOCUMENTED_TARGET, target), 'trial.js': TRIAL })
    const port = await freePort()
    const running = await project.start(ready, 'npx', ...serve(port))
    try {
      await expectHello(await project.run('node', 'trial.js', `http://localhost:${port}`))
    } finally {
      await running.stop()
    }
  },
}))
