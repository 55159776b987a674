import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { ROOT } from '../../site/pages.ts'

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html',
  '.js': 'text/javascript',
  '.css': 'text/css',
  '.svg': 'image/svg+xml',
  '.json': 'application/json',
}

/** A build of the site as version 1.2.3, served by a plain server of files, behind a path, as on any host. */
export async function buildAndServe() {
  const folder = mkdtempSync(path.join(tmpdir(), 'webmq-site-'))
  const out = path.join(folder, 'v1.2')
  const vitepress = path.join(ROOT, 'site/node_modules/vitepress/bin/vitepress.js')
  const child = spawn(process.execPath, [vitepress, 'build', path.join(ROOT, 'site')], {
    env: { ...process.env, WEBMQ_DOCS_OUT: out, WEBMQ_DOCS_VERSION: '1.2.3', NODE_ENV: 'production' },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text) => (output += text))
  const [code] = await once(child, 'close')
  if (code !== 0) throw new Error(output)

  const server = createServer((request, response) => {
    const name = decodeURIComponent(new URL(request.url ?? '', 'http://host').pathname).replace(/^\/docs/, '')
    const file = path.join(folder, name.endsWith('/') ? `${name}index.html` : name)
    if (!existsSync(file) || !statSync(file).isFile()) {
      response.writeHead(404).end()
      return
    }
    response.setHeader('content-type', TYPES[path.extname(file)] ?? 'text/plain')
    response.end(readFileSync(file))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    out,
    /** Address of the folder of the version. */
    url: `http://127.0.0.1:${port}/docs/v1.2/`,
    close: () => {
      server.close()
      server.closeAllConnections()
      rmSync(folder, { recursive: true })
    },
  }
}
