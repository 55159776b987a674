import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import type * as client from 'webmq-client'
import type * as outbox from 'webmq-client/outbox'
import type * as parts from 'webmq-client/parts'
import type * as tabs from 'webmq-client/tabs'

/** What the pages of the site have as `webmq`. */
export type PageModules = typeof client & typeof outbox & typeof parts & typeof tabs

const MODULES = ['', '/outbox', '/parts', '/tabs']
const APP = [
  ...MODULES.map((name, index) => `import * as m${index} from 'webmq-client${name}'`),
  `globalThis.webmq = { ${MODULES.map((_, index) => `...m${index}`)} }`,
].join('\n')
const WORKER = `
  import { serveTabs } from 'webmq-client/tabs'
  serveTabs()
`
const PAGE = '<!doctype html><title>webmq</title><script type="module" src="/app.js"></script>'

/** Serves pages that have the client, bundled as an app would. */
export async function startSite() {
  const [app, worker] = await Promise.all([bundle(APP), bundle(WORKER)])
  const files: Record<string, readonly [type: string, body: string]> = {
    '/': ['text/html', PAGE],
    '/app.js': ['text/javascript', app],
    '/worker.js': ['text/javascript', worker],
  }
  const server = createServer((request, response) => {
    const [type, body] = files[request.url ?? ''] ?? []
    response.writeHead(body === undefined ? 404 : 200, { 'content-type': type ?? 'text/plain' }).end(body)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const stop = () => {
    server.closeAllConnections()
    return new Promise((resolve) => server.close(resolve))
  }
  return { url: `http://127.0.0.1:${port}/`, stop }
}

async function bundle(contents: string): Promise<string> {
  const { outputFiles } = await build({
    stdin: { contents, resolveDir: fileURLToPath(new URL('.', import.meta.url)) },
    bundle: true,
    format: 'esm',
    target: 'es2022',
    write: false,
  })
  return outputFiles[0]?.text ?? ''
}
