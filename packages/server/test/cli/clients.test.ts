import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { freePort } from 'webmq-services'
import { createServer } from '../../src/create-server.js'
import type { WebMQServer } from '../../src/doors/in-process/webmq-server.js'
import { runInProcess, startInProcess } from './in-process.js'
import { startCli } from './process.js'

const SECRET = 'a secret of more than thirty-two bytes'
/** Ends a test that hangs long before vitest does. */
const BOUNDED = ['--timeout', '45s']

let folder: string
let open: WebMQServer
let guarded: WebMQServer
let url: string
let guardedUrl: string

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'webmq-clients-'))
  open = createServer({ port: 0, logLevel: 'silent' })
  guarded = createServer({
    port: 0,
    logLevel: 'silent',
    jwt: { secret: SECRET },
    apiKeys: [SECRET.replaceAll(' ', '-')],
  })
  url = (await open.start()).url
  guardedUrl = (await guarded.start()).url
})

afterAll(async () => {
  await Promise.all([open, guarded].map((server) => server?.stop({ drainMs: 0 })))
  rmSync(folder, { recursive: true })
})

const pub = (...args: string[]) => runInProcess(['pub', '--url', url, ...args])
const sub = (...args: string[]) => startInProcess(['sub', '--url', url, ...BOUNDED, ...args])
const jsonLines = (text: string) =>
  text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as object)

async function token(...grants: string[]): Promise<string> {
  const args = grants.flatMap((grant) => ['--grant', grant])
  const env = { WEBMQ_JWT_SECRET: SECRET }
  return (await runInProcess(['token', 'create', '-q', '--user', 'ann', ...args], { env })).stdout.trim()
}

describe('webmq-server sub', () => {
  it('prints key and payload of each message, and ends after --count', async () => {
    const { stderr, ended } = sub('plain.#', '--count', '3')
    await stderr.until('listening to plain.#')
    await pub('plain.1', '{"text":"hello"}')
    await pub('plain.2', 'a text')
    await runInProcess(['pub', '--url', url, 'plain.3', '--binary'], { stdin: Buffer.from([0, 255]) })
    expect(await ended).toMatchObject({
      exitCode: 0,
      stdout: 'plain.1 {"text":"hello"}\nplain.2 "a text"\nplain.3 base64:AP8=\n',
    })
  })

  // Symptom: `pub` and `sub` changed the digits of an id of 64 bits. Cause: both parsed JSON, and wrote it anew.
  it('prints payloads as they were published, with all digits, each in one line', async () => {
    const texts = ['1724442618569203714', '{"price":1.0, "far":1e400}', '"\\u00e9 "', '[1,\n2]', '1x']
    const { stderr, ended } = sub('digits', '--count', `${texts.length}`)
    const json = sub('digits', '--count', `${texts.length}`, '--json')
    await Promise.all([stderr.until('listening to digits'), json.stderr.until('listening to digits')])
    for (const text of texts) await pub('digits', text)
    const printed = [...texts.slice(0, 3), '[1, 2]', '"1x"']
    expect((await ended).stdout).toBe(printed.map((text) => `digits ${text}\n`).join(''))
    const lines = (await json.ended).stdout.trimEnd().split('\n')
    expect(lines.map((line) => line.replace(/,"position":"[^"]+"/, ''))).toEqual(
      printed.map((text) => `{"key":"digits","payload":${text},"replayed":false}`),
    )
  })

  it('prints one JSON object per message, live and from the log, and a message once for several patterns', async () => {
    await pub('json.1', '1')
    const { stderr, ended } = sub('json.1', 'json.#', '--json', '--last', '1', '--count', '4')
    await stderr.until('listening to json.1')
    await stderr.until('listening to json.#')
    await pub('json.1', '[2]')
    await pub('json.2', 'null')
    const { exitCode, stdout } = await ended
    expect(exitCode).toBe(0)
    // The log is read for each pattern.
    expect(jsonLines(stdout)).toEqual([
      { key: 'json.1', payload: 1, position: expect.any(String), replayed: true },
      { key: 'json.1', payload: 1, position: expect.any(String), replayed: true },
      { key: 'json.1', payload: [2], position: expect.any(String), replayed: false },
      { key: 'json.2', payload: null, position: expect.any(String), replayed: false },
    ])
  })

  it('continues after a position, and reports a gap where it cannot', async () => {
    const first = JSON.parse((await pub('since.1', '1', '--json')).stdout) as { position: string }
    await pub('since.1', '2')
    const known = await sub('since.#', '--json', '--since', first.position, '--count', '1').ended
    expect(jsonLines(known.stdout)).toMatchObject([{ payload: 2, replayed: true }])

    const unknown = await sub('since.#', '--json', '--since', 'another:1', '--count', '2').ended
    expect(jsonLines(unknown.stdout)).toMatchObject([
      { gap: 'epoch-changed', pattern: 'since.#', since: 'another:1' },
      { payload: 1 },
      { payload: 2 },
    ])
    expect(unknown.stderr).toContain('gap: messages of since.# may be missing (epoch-changed)')
  })

  it('refuses a pattern that is none before it connects, and so does pub a key', async () => {
    const nowhere = ['--url', 'ws://127.0.0.1:1/ws', '--connect-timeout', '20s']
    const startMs = performance.now()
    expect(await runInProcess(['sub', 'a.#.b.#.#x', ...nowhere])).toMatchObject({ exitCode: 2, stdout: '' })
    const { exitCode, stderr } = await runInProcess(['pub', 'a.*', '1', ...nowhere])
    expect(exitCode).toBe(2)
    expect(stderr).toContain('E_KEY_INVALID')
    expect(performance.now() - startMs).toBeLessThan(15_000)
  })

  it('ends with 0 when its time is over, and with 5 when messages are missing then', async () => {
    expect(await runInProcess(['sub', '--url', url, 'quiet', '--timeout', '50ms'])).toMatchObject({ exitCode: 0 })
    const args = ['sub', '--url', url, 'quiet', '--timeout', '50ms', '--count', '1']
    expect(await runInProcess(args)).toMatchObject({ exitCode: 5, stdout: '' })
  })

  it('escapes for a terminal what could rewrite the screen', async () => {
    const command = sub('screen.#', '--count', '1')
    command.stdout.isTTY = true
    await command.stderr.until('listening to screen.#')
    await pub('screen.\u202e1', '"\\u001b[2J\u009b2J\u202e"')
    expect((await command.ended).stdout).toBe('screen.\\u{202e}1 "\\u001b[2J\\u{9b}2J\\u{202e}"\n')
  })

  it('ends cleanly on Ctrl-C and when nobody reads its output', async () => {
    const interrupted = startCli(['sub', '--url', url, 'signals.#', ...BOUNDED])
    const piped = startCli(['sub', '--url', url, 'pipe.#', ...BOUNDED])
    for (const { child, output } of [interrupted, piped]) {
      while (!output.stderr.includes('listening')) await once(child.stderr ?? child, 'data')
    }
    interrupted.child.kill('SIGINT')
    expect(await interrupted.ended).toMatchObject({ exitCode: 0, stdout: '', stderr: 'listening to signals.#\n' })

    piped.child.stdout?.destroy()
    await pub('pipe.1', '1')
    await pub('pipe.2', '2')
    expect(await piped.ended).toMatchObject({ exitCode: 0, stderr: 'listening to pipe.#\n' })
  })
})

describe('webmq-server pub', () => {
  it('prints the outcome as JSON, and the server drops a second message with the same id', async () => {
    const first = await pub('once', '1', '--id', 'order-7', '--json')
    expect(jsonLines(first.stdout)).toEqual([
      { key: 'once', id: 'order-7', duplicate: false, position: expect.any(String) },
    ])
    const second = await pub('once', '1', '--id', 'order-7')
    expect(second).toMatchObject({ exitCode: 0, stdout: '', stderr: expect.stringContaining('had it already') })
  })

  it.each([
    ['JSON as it is', ['{"a":[1]}'], '', { a: [1] }],
    ['anything else as a text', ['hello there'], '', 'hello there'],
    ['JSON as a text with --text', ['--text', '42'], '', '42'],
    ['standard input', ['-'], '{"from":"stdin"}\n', { from: 'stdin' }],
    ['standard input without a payload', ['--text'], 'a line\n', 'a line'],
  ])('sends %s', async (_, args, stdin, payload) => {
    const result = await runInProcess(['pub', '--url', url, 'payloads', ...args], { stdin })
    expect(result.exitCode, result.stderr).toBe(0)
    const { stdout } = await sub('payloads', '--json', '--last', '1', '--count', '1').ended
    expect(jsonLines(stdout)).toMatchObject([{ payload }])
  })

  // It printed the same line with each attempt.
  it('says once why there is no connection, and then that it has given up', async () => {
    const dead = `ws://127.0.0.1:${await freePort()}/ws`
    const { exitCode, stderr } = await runInProcess(['pub', '--url', dead, 'a', '1', '--connect-timeout', '2s'])
    expect(exitCode).toBe(3)
    // Once more when the reason was found.
    const lines = stderr.match(/no connection \(.*ECONNREFUSED.*\); trying again/g) ?? []
    expect(new Set(lines).size).toBe(lines.length)
    expect(lines.length).toBeLessThan(3)
    expect(stderr).not.toContain('https://')
  })

  it.each([
    [['a', '{"a":'], 2, 'not JSON'],
    [['a', ''], 2, 'it is empty'],
    [['a', '1', '--binary', '--text'], 2, '--binary and --text'],
    [['a b', '1'], 2, 'key is not valid'],
    [['a', '1', '--id', 'not an id'], 2, 'E_OPTION_INVALID'],
    [['a', '1', '--connect-timeout', 'soon'], 2, 'It must be a time'],
    [['a', '1', '--token', ''], 2, '--token: the token is empty'],
    [['a', '1', '--token', 'x', '--token-file', 'y'], 2, 'use one'],
    [['a', '1', '--token-file', '/nowhere/token'], 2, 'cannot read /nowhere/token'],
    [[], 2, "missing required argument 'key'"],
  ])('refuses %j', async (args, exitCode, message) => {
    const result = await pub(...args)
    expect(result).toMatchObject({ exitCode, stdout: '' })
    expect(result.stderr).toContain(message)
  })
})

describe('a payload that is too large', () => {
  it('is refused by the server', async () => {
    const result = await runInProcess(['pub', '--url', url, 'a'], { stdin: `"${'x'.repeat(300_000)}"` })
    expect(result).toMatchObject({ exitCode: 1, stderr: expect.stringContaining('E_PAYLOAD_TOO_LARGE') })
  })
})

describe('commands that are clients', () => {
  it('take their token from a flag, a file or the environment', async () => {
    const granted = await token('chat.#:listen,publish')
    const file = join(folder, 'token')
    writeFileSync(file, `${granted}\n`)
    const args = ['pub', '--url', guardedUrl, 'chat.1', '1']
    expect(await runInProcess([...args, '--token', granted])).toMatchObject({ exitCode: 0 })
    expect(await runInProcess([...args, '--token-file', file])).toMatchObject({ exitCode: 0 })
    const env = { WEBMQ_TOKEN: granted, WEBMQ_URL: guardedUrl }
    expect(await runInProcess(['pub', 'chat.1', '1'], { env })).toMatchObject({ exitCode: 0 })
    // As back ends have it: the address alone.
    const base = { ...env, WEBMQ_URL: guardedUrl.replace('ws://', 'http://').replace('/ws', '') }
    expect(await runInProcess(['pub', 'chat.0', '1'], { env: base })).toMatchObject({ exitCode: 0 })
    const received = await runInProcess(['sub', 'chat.1', '--last', '3', '-n', '3', ...BOUNDED], { env })
    expect(received).toMatchObject({ exitCode: 0, stdout: 'chat.1 1\nchat.1 1\nchat.1 1\n' })
  })

  it('end with 4 when the server refuses them', async () => {
    const granted = await token('chat.#:listen')
    const withToken = (text: string) => ['--url', guardedUrl, '--token', text]
    const outcomes = await Promise.all([
      runInProcess(['pub', 'chat.1', '1', ...withToken(granted)]),
      runInProcess(['sub', 'other.#', ...withToken(granted), ...BOUNDED]),
      runInProcess(['sub', 'chat.#', ...withToken('nonsense'), ...BOUNDED]),
      runInProcess(['sub', 'chat.#', '--url', guardedUrl, ...BOUNDED]),
    ])
    expect(outcomes.map(({ exitCode }) => exitCode)).toEqual([4, 4, 4, 4])
    const codes = ['E_FORBIDDEN', 'E_FORBIDDEN', 'E_TOKEN_INVALID', 'E_UNAUTHENTICATED']
    for (const [index, code] of codes.entries()) expect(outcomes[index]?.stderr).toContain(code)
  })

  it('end with 4 when their token is revoked, before they come and while they listen', async () => {
    const revoked = await token('revoked.#:listen')
    const args = ['sub', 'revoked.#', '--url', guardedUrl, '--token', revoked, ...BOUNDED]
    const listening = startInProcess(args)
    await listening.stderr.until('listening to revoked.#')
    const nowS = Math.floor(Date.now() / 1_000)
    const answer = await fetch(`${guardedUrl.replace('ws', 'http').replace('/ws', '')}/api/revoke`, {
      method: 'POST',
      headers: { authorization: `Bearer ${SECRET.replaceAll(' ', '-')}`, 'content-type': 'application/json' },
      body: JSON.stringify({ user: 'ann', until: nowS + 3_600 }),
    })
    expect(answer.status).toBe(200)
    for (const { exitCode, stderr } of [await listening.ended, await runInProcess(args)]) {
      expect(stderr).toContain('E_TOKEN_REVOKED')
      expect(exitCode).toBe(4)
    }
  })

  it('end with 3 when nothing answers, and when the path is wrong', async () => {
    const limit = ['--connect-timeout', '1s']
    const nobody = `ws://127.0.0.1:${await freePort()}/ws`
    expect(await runInProcess(['pub', 'a', '1', '--url', nobody, ...limit])).toMatchObject({ exitCode: 3 })
    const wrong = await runInProcess(['sub', 'a', '--url', url.replace('/ws', '/other'), ...limit])
    expect(wrong).toMatchObject({ exitCode: 3, stdout: '' })
    expect(wrong.stderr).toContain('error: could not connect')
    expect(await runInProcess(['pub', 'a', '1', '--url', 'nonsense'])).toMatchObject({ exitCode: 2 })
  })
})
