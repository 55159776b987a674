import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer as createHttpServer } from 'node:http'
import { createServer as createHttpsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { createServer } from 'webmq-server'
import { makeCertificate } from 'webmq-services'
import { WebSocketServer } from 'ws'
import { runCli } from '../src/cli.js'
import { findLoadgen } from '../src/loadgen/find.js'
import { Loadgen } from '../src/loadgen/loadgen.js'
import { signToken } from '../src/targets/json-web-token.js'

const BENCHMARK = fileURLToPath(new URL('../benchmark.js', import.meta.url))
/** A release build of the load generator from nothing, on a busy machine. */
const BUILD_TIMEOUT_MS = 240_000
const RUN_TIMEOUT_MS = 60_000
const quiet = { phase: () => undefined, note: () => undefined }

let directory: string
let program: string
let cert: string
let key: string
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'webmq-bench-'))
  program = await findLoadgen(quiet)
  ;({ cert, key } = await makeCertificate({ names: ['localhost'] }))
  await writeFile(join(directory, 'cert.pem'), cert)
  await writeFile(join(directory, 'key.pem'), key)
}, BUILD_TIMEOUT_MS)
afterAll(async () => {
  await rm(directory, { recursive: true })
})

describe('the load generator over TLS', { timeout: RUN_TIMEOUT_MS }, () => {
  /** An echo with a greeting, on loopback. */
  async function startServer(isSecure = true) {
    const http = isSecure ? createHttpsServer({ cert, key }) : createHttpServer()
    const server = new WebSocketServer({ server: http, perMessageDeflate: false })
    server.on('connection', (socket) => {
      socket.on('message', (data) => socket.send(data, { binary: false }))
      socket.send('ready')
    })
    await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve))
    onTestFinished(() => {
      server.close()
      http.close()
      http.closeAllConnections()
    })
    return (http.address() as AddressInfo).port
  }

  async function startLoadgen() {
    const loadgen = new Loadgen({ program, threads: 1 })
    onTestFinished(async () => await loadgen.stop())
    await loadgen.ready()
    return loadgen
  }

  it('takes a trusted certificate, refuses another, and takes any when it is told to', async () => {
    const loadgen = await startLoadgen()
    const port = await startServer()
    const connect = async (tls: object) =>
      await loadgen.connect({
        count: 3,
        port,
        path: '/',
        ready: 'text:ready',
        tls: { serverName: 'localhost', ...tls },
      })
    expect(await connect({ ca: cert })).toMatchObject({ ok: 3, failed: 0, tls: { resumed: 0 } })
    expect(await connect({})).toMatchObject({ ok: 0, errors: { 'certificate of an unknown issuer': 3 }, tls: null })
    expect(await connect({ ca: cert, serverName: 'other.example' })).toMatchObject({
      errors: { 'certificate is for another name': 3 },
    })
    expect(await connect({ insecure: true, serverName: 'other.example' })).toMatchObject({ ok: 3 })
    const plain = await startServer(false)
    const options = { count: 1, path: '/', tls: { serverName: 'localhost', insecure: true } }
    expect(await loadgen.connect({ ...options, port: plain })).toMatchObject({ ok: 0, failed: 1 })
  })

  it('uses each ticket of an earlier connection once', async () => {
    const loadgen = await startLoadgen()
    const port = await startServer()
    const options = { port, path: '/', ready: 'text:ready', count: 10 }
    const tls = { serverName: 'localhost', insecure: true }
    expect((await loadgen.connect({ ...options, tls })).tls).toMatchObject({ resumed: 0 })
    await loadgen.close(false)
    expect((await loadgen.connect({ ...options, tls })).tls).toMatchObject({ resumed: 10 })
    expect((await loadgen.connect({ ...options, tls: { ...tls, resume: false } })).tls).toMatchObject({ resumed: 0 })
  })

  it.each([10, 100_000])('carries messages of %i bytes both ways, whole and in order', async (bytes) => {
    const loadgen = await startLoadgen()
    const port = await startServer()
    const tls = { serverName: 'localhost', insecure: true }
    await loadgen.connect({ count: 2, port, path: '/', ready: 'text:ready', tls })
    await loadgen.startCounting({ firstSeq: 1 })
    const frame = `{"seq":$SEQ,"ts_us":$TS_US,"pad":"${'x'.repeat(bytes)}"}`
    const sent = await loadgen.floodIn({ durationMs: 500, frame, connections: 1, mode: 'paced', perSecond: 100 })
    expect(sent).toMatchObject({ writtenFrames: 50, unfinished: 0 })
    const counted = await loadgen.stopCounting({ quietMs: 1_000 })
    expect(counted).toMatchObject({ frames: 50, gapCount: 0, duplicateCount: 0, reorderedCount: 0, lastSeq: 50 })
    // At least one record of TLS around them; on a busy machine several messages share one.
    expect(counted.wireBytes).toBeGreaterThan(counted.payloadBytes + 22)
    const echoed = await loadgen.ping({ perConnection: 5, intervalMs: 20, kind: 'app', text: 'ping', await: 'ping' })
    expect(echoed).toMatchObject({ count: 10, missing: 0 })
    expect(echoed.durationUs).toBeGreaterThan(80_000)
  })

  it('starts connections at the rate that is asked for', async () => {
    const loadgen = await startLoadgen()
    const port = await startServer(false)
    const connected = await loadgen.connect({ count: 11, port, path: '/', ready: 'text:ready', perSecond: 20 })
    expect(connected).toMatchObject({ ok: 11, failed: 0 })
    expect(connected.durationUs).toBeGreaterThan(500_000)
  })
})

describe('a server that runs already', { timeout: RUN_TIMEOUT_MS }, () => {
  const secret = randomBytes(32).toString('base64')
  const token = signToken(secret, 'bench', Math.floor(Date.now() / 1_000))
  let url: string
  let stop: () => Promise<void>
  beforeAll(async () => {
    const tls = { certFile: join(directory, 'cert.pem'), keyFile: join(directory, 'key.pem') }
    const server = createServer({
      host: '127.0.0.1',
      port: 0,
      transport: 'uws',
      logLevel: 'error',
      jwt: { secret },
      tls,
    })
    const { port } = await server.start()
    url = `wss://localhost:${port}`
    stop = async () => await server.stop()
  })
  afterAll(async () => await stop())

  /** Runs the built benchmark.js as a user does; `clients` has threads, which need what is built. */
  async function benchmark(...args: string[]) {
    const child = spawn(process.execPath, [BENCHMARK, '--no-progress', ...args], { stdio: ['ignore', 'pipe', 'pipe'] })
    onTestFinished(() => void child.kill('SIGKILL'))
    let output = ''
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (text) => (output += text))
    const code = await new Promise<number | null>((resolve) => child.once('close', resolve))
    return { code, output }
  }

  async function bench(...args: string[]) {
    const output = { text: '', write: (text: string) => (output.text += text) }
    const environment = { stdout: output, stderr: output, signal: new AbortController().signal, env: {} }
    return { code: await runCli(['--no-progress', ...args], environment), output: output.text }
  }

  it.each([
    ['clients', ['--tiers', '4', '--duration', '1', '--warmup', '0', '--assert', 'gapCount=0']],
    ['paced', ['--tiers', '5', '--duration', '1', '--warmup', '0.2', '--rate', '20', '--assert', 'gapCount=0']],
    ['ping', ['--tiers', '5', '--pings', '3', '--interval', '50', '--assert', 'pingCount=15']],
    ['storm', ['--tiers', '10', '--assert', 'failedCount=0', '--assert', 'connectsPerSecond<60']],
  ])('is measured by %s, without figures of its own process', async (scenario, flags) => {
    const file = join(directory, `${scenario}.json`)
    const access = ['--url', url, '--token', token, '--ca', join(directory, 'cert.pem')]
    const { code, output } = await benchmark('--scenario', scenario, ...access, ...flags, '--json', file)
    expect(code, output).toBe(0)
    const written = await readFile(file, 'utf8')
    expect(written).not.toContain(token)
    expect(output).not.toContain(token)
    expect(output).not.toMatch(/Server/)
    const { rows } = JSON.parse(written)
    expect(rows).toMatchObject([{ target: new URL(url).host, serverCpuSeconds: null }])
    expect(rows[0].latencyMs.p50).toBeGreaterThan(0)
  })

  it.each([
    ['no token', ['--insecure'], /E_UNAUTHENTICATED: .*--token/],
    ['a wrong token', ['--insecure', '--token', 'abc'], /E_TOKEN_INVALID: .*--token/],
    ['a certificate of nobody', ['--token', token], /certificate is of an authority.*--ca.*--insecure/],
  ])('refuses %s: the run says why, and what to do', async (_, flags, message) => {
    const { code, output } = await bench('--url', url, ...flags)
    expect(output).toMatch(message)
    expect(code).toBe(1)
  })

  it('refuses keys that the token does not grant', async () => {
    const grants = [{ keys: ['team.#'], allow: ['listen', 'publish'] }]
    const narrow = signToken(secret, 'bench', Math.floor(Date.now() / 1_000), grants)
    const access = ['--url', url, '--token', narrow, '--insecure']
    const refused = await bench(...access)
    expect(refused.output).toMatch(/E_FORBIDDEN: .*listen and publish for webmq-bench\.#.*--key-prefix/)
    const flags = ['--scenario', 'ping', '--tiers', '1', '--pings', '1', '--key-prefix', 'team']
    expect((await bench(...access, ...flags)).code).toBe(0)
  })

  it.each([
    [`/nowhere`, /E_PATH_NOT_FOUND.*--url/],
    ['', /ECONNREFUSED.*nothing listens there/],
  ])('is not at %j', async (path, message) => {
    const elsewhere = path === '' ? 'ws://127.0.0.1:1' : `${url}${path}`
    const { code, output } = await bench('--url', elsewhere, '--token', token, '--insecure')
    expect(output).toMatch(message)
    expect(code).toBe(1)
  })
})
