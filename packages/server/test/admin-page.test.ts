import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { API_KEY, ApiServer, SECRET, tokenOf } from './api-server.js'
import { ProtocolClient } from './protocol-client.js'

describe('the files and the tail of the admin page', () => {
  let server: ApiServer
  let url: string

  beforeAll(async () => {
    server = await ApiServer.start({ adminPort: 0, jwt: { secret: SECRET } })
    url = `http://127.0.0.1:${server.server.adminAddress?.port}`
  })
  afterAll(() => server.server.stop({ drainMs: 0 }))

  const tail = (pattern: string, headers: Readonly<Record<string, string>> = {}, signal?: AbortSignal) =>
    fetch(`${url}/admin/tail?pattern=${encodeURIComponent(pattern)}`, {
      headers: { authorization: `Bearer ${API_KEY}`, ...headers },
      ...(signal === undefined ? {} : { signal }),
    })

  it('come with a strict policy, and nothing above their folder', async () => {
    for (const path of ['/', '/admin', '/admin.js']) {
      const response = await fetch(url + path)
      expect(response.status).toBe(200)
      expect(response.headers.get('content-security-policy')).toContain("default-src 'none'; script-src 'self'")
      expect(await response.text()).not.toContain(API_KEY)
    }
    for (const path of ['/..%2fpackage.json', '/%2e%2e/package.json', '/admin/admin.js', '/.git', '/demo.js']) {
      expect((await fetch(url + path)).status, path).toBe(404)
    }
    expect((await fetch(`${url}/admin`, { method: 'POST' })).status).toBe(405)
  })

  it('streams messages as events, texts and bytes', async () => {
    const end = new AbortController()
    const response = await tail('tail.#', {}, end.signal)
    expect(response.headers.get('content-type')).toBe('text/event-stream')
    await server.server.publish('tail.1', { text: 'line\nbreak' })
    await server.server.publish('tail.2', Uint8Array.of(0, 255))
    let text = ''
    const decoder = new TextDecoder()
    for await (const chunk of response.body ?? []) {
      text += decoder.decode(chunk as Uint8Array)
      if (text.includes('tail.2') && text.endsWith('\n\n')) break
    }
    end.abort()
    const events = [...text.matchAll(/^event: message\ndata: (.*)$/gm)].map(
      ([, data = '']) => JSON.parse(data) as object,
    )
    expect(events).toMatchObject([
      { key: 'tail.1', payload: { text: 'line\nbreak' } },
      { key: 'tail.2', payloadBase64: 'AP8=' },
    ])
  })

  // A message was missing without a word: JSON that cannot be written again threw within the listener, as did what is no JSON.
  it('tells a gap for what it cannot show', async () => {
    const end = new AbortController()
    const response = await tail('odd.#', {}, end.signal)
    const deep = `${'['.repeat(50_000)}${']'.repeat(50_000)}`
    const client = await ProtocolClient.open(server.webSocketUrl, {
      headers: { authorization: `Bearer ${await tokenOf('ann')}` },
    })
    for (const payload of [deep, 'no JSON', '7']) client.send({ verb: 'publish', key: 'odd.1', echo: true, payload })
    let text = ''
    const decoder = new TextDecoder()
    for await (const chunk of response.body ?? []) {
      text += decoder.decode(chunk as Uint8Array)
      if (text.includes('"payload":7') && text.endsWith('\n\n')) break
    }
    end.abort()
    client.close()
    expect(text.match(/^event: gap\ndata: {"reason":"refused"}$/gm)).toHaveLength(2)
    expect(server.log.lines.filter(({ level }) => level === 'error')).toEqual([])
  })

  it('refuses strangers, clients, foreign pages and patterns that are none', async () => {
    expect((await tail('#', { authorization: '' })).status).toBe(401)
    expect((await tail('#', { authorization: 'Bearer nonsense' })).status).toBe(401)
    expect((await tail('#', { authorization: `Bearer ${await tokenOf('ann')}` })).status).toBe(403)
    expect((await tail('#', { origin: 'https://evil.example' })).status).toBe(403)
    for (const pattern of ['', 'no*pattern', '$webmq.#']) expect((await tail(pattern)).status, pattern).toBe(422)
  })

  it('has a few tails at once, and room again when one ends', async () => {
    const ends = Array.from({ length: 8 }, () => new AbortController())
    const open = await Promise.all(ends.map(({ signal }) => tail('many.#', {}, signal)))
    expect(open.map(({ status }) => status)).toEqual(Array.from({ length: 8 }, () => 200))
    const refused = await tail('many.#')
    expect({ status: refused.status, json: await refused.json() }).toMatchObject({
      status: 503,
      json: { code: 'E_CONNECTION_LIMIT' },
    })
    for (const end of ends) end.abort()
    const last = new AbortController()
    await expect.poll(async () => (await tail('many.#', {}, last.signal)).status).toBe(200)
    last.abort()
  })
})
