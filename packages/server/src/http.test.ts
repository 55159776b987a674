import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { type AddressInfo, connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { recordingLogger } from '../test/fake-server.js'
import { type Health, HttpFrontend } from './http.js'

const HEALTH: Health = {
  status: 'ok',
  node: 'abc',
  version: '1.2.3',
  uptimeMs: 5,
  connections: 2,
  broker: { name: 'memory', status: 'up' },
}

describe('HttpFrontend', () => {
  let folder: string
  let health: () => Health
  let frontend: HttpFrontend
  let port: number
  const { logger, lines } = recordingLogger()

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'webmq-http-'))
    await mkdir(join(folder, 'page'))
    await mkdir(join(folder, 'client', 'protocol'), { recursive: true })
    await writeFile(join(folder, 'secret.js'), 'secret')
    await writeFile(join(folder, 'page', 'index.html'), '<!doctype html><p>demo</p>')
    await writeFile(join(folder, 'page', '.hidden.js'), 'hidden')
    await writeFile(join(folder, 'page', 'notes.txt'), 'notes')
    await writeFile(join(folder, 'client', 'protocol', 'index.js'), 'export {}')
    health = () => HEALTH
    frontend = new HttpFrontend({
      path: '/ws',
      health: () => health(),
      demo: { pageFolder: join(folder, 'page'), clientFolder: join(folder, 'client') },
      log: logger,
    })
    port = await listening(frontend)
  })

  afterEach(async () => {
    frontend.close()
    await new Promise((resolve) => {
      frontend.server.close(resolve)
    })
    await rm(folder, { recursive: true })
  })

  function listening({ server }: HttpFrontend): Promise<number> {
    return new Promise((resolve) => {
      server.listen(0, '127.0.0.1', () => resolve((server.address() as AddressInfo).port))
    })
  }

  const get = (path: string, init?: RequestInit) => fetch(`http://127.0.0.1:${port}${path}`, init)

  /** `fetch` tidies a path up before it asks; this asks for exactly what it is told. */
  function statusOf(path: string, method = 'GET'): Promise<number> {
    return new Promise((resolve, reject) => {
      const socket = connect(port, '127.0.0.1', () => {
        socket.write(`${method} ${path} HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n`)
      })
      let answer = ''
      socket.setEncoding('latin1')
      socket.on('data', (chunk: string) => {
        answer += chunk
      })
      socket.on('end', () => resolve(Number(answer.split(' ')[1])))
      socket.on('error', reject)
    })
  }

  it('says how it is', async () => {
    const response = await get('/health?from=probe')
    expect(response.status).toBe(200)
    expect(response.headers.get('cache-control')).toBe('no-store')
    expect(await response.json()).toEqual({ ...HEALTH, path: '/ws' })
  })

  it('says with 503 that it drains', async () => {
    health = () => ({ ...HEALTH, status: 'draining' })
    const response = await get('/health')
    expect(response.status).toBe(503)
    expect(await response.json()).toMatchObject({ status: 'draining' })
  })

  it('serves the page and the client, each with its type, nothing inline, and not again what has not changed', async () => {
    const page = await get('/')
    expect(await page.text()).toContain('demo')
    expect(page.headers.get('content-type')).toBe('text/html; charset=utf-8')
    const policy = page.headers.get('content-security-policy') ?? ''
    expect(policy).toContain("script-src 'self'")
    expect(policy).not.toContain('unsafe')
    expect(page.headers.get('x-content-type-options')).toBe('nosniff')
    const script = await get('/client/protocol/index.js')
    expect(script.headers.get('content-type')).toBe('text/javascript; charset=utf-8')
    expect(await script.text()).toBe('export {}')
    const again = await get('/', { headers: { 'if-none-match': page.headers.get('etag') ?? '' } })
    expect(again.status).toBe(304)
  })

  it('answers HEAD like GET, without the body', async () => {
    for (const path of ['/health', '/']) {
      const [head, full] = [await get(path, { method: 'HEAD' }), await get(path)]
      expect(head.status).toBe(200)
      expect(await head.text()).toBe('')
      expect(head.headers.get('content-length')).toBe(full.headers.get('content-length'))
      expect((await full.text()).length).toBe(Number(full.headers.get('content-length')))
    }
  })

  it.each([
    '/nothing.html',
    '/notes.txt',
    '/.hidden.js',
    '/client/',
    '/client',
    '/../secret.js',
    '/client/../secret.js',
    '/client/..%2fsecret.js',
    '/client/%2e%2e/secret.js',
    '/..%2f..%2f..%2fetc/passwd',
    '/client/..%5csecret.js',
    '//secret.js',
    '/%00.js',
    '/%zz.js',
    '/client/protocol',
  ])('does not find %s', async (path) => {
    expect(await statusOf(path)).toBe(404)
  })

  it('says in JSON that it has nothing there', async () => {
    const response = await get('/nothing')
    expect(response.status).toBe(404)
    expect(await response.json()).toMatchObject({ code: 'E_PATH_NOT_FOUND' })
  })

  it.each(['POST', 'PUT', 'DELETE', 'OPTIONS'])('refuses %s', async (method) => {
    const response = await get('/health', { method })
    expect(response.status).toBe(405)
    expect(response.headers.get('allow')).toBe('GET, HEAD')
  })

  it('tells a plain request for the WebSocket endpoint to upgrade', async () => {
    expect(await statusOf('/ws')).toBe(426)
  })

  it('serves no page unless it is asked to', async () => {
    const bare = new HttpFrontend({ path: '/ws', health, log: logger })
    const barePort = await listening(bare)
    const response = await fetch(`http://127.0.0.1:${barePort}/`)
    expect(response.status).toBe(404)
    bare.close()
    bare.server.close()
  })

  it('reveals nothing of a bug', async () => {
    health = () => {
      throw new Error('secret of the house')
    }
    const response = await get('/health')
    expect(response.status).toBe(500)
    expect(await response.text()).not.toContain('secret')
    expect(lines.at(-1)).toMatchObject({ level: 'error', fields: { err: { message: 'secret of the house' } } })
  })
})
