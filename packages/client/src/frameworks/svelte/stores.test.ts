// @vitest-environment happy-dom
import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'
import { type Component, flushSync, mount, unmount } from 'svelte'
import { compile } from 'svelte/compiler'
import { get, writable } from 'svelte/store'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { createTestClient, createTestServer, type TestServer } from '../../dev/testing/index.js'
import type { WebMQClient } from '../../index.js'
import { openStream } from '../../parts/stream/index.js'
import * as hooks from './index.js'
import { useMessages, usePublish, useStateTopic, useStatus, useStream } from './index.js'

const { resolve } = createRequire(import.meta.url)

// Node resolves `svelte` to its half for servers.
vi.mock('svelte', async () => {
  const { createRequire } = await import('node:module')
  const server = createRequire(import.meta.url).resolve('svelte')
  return import(server.replace('index-server', 'index-client'))
})

/** Compiles a component; it gets the functions of this module as the property `hooks`. */
async function compiled(source: string): Promise<Component<{ hooks: typeof hooks; client?: WebMQClient }>> {
  const { js } = compile(`<script>const { hooks, client } = $props(); ${source}`, {
    generate: 'client',
    discloseVersion: false,
  })
  const code = js.code.replaceAll(/'(svelte\/[^']+)'/g, (_, name) => `'${pathToFileURL(resolve(name))}'`)
  return (await import(`data:text/javascript,${encodeURIComponent(code)}`)).default
}

let client: WebMQClient
let server: TestServer
let box: HTMLElement
const mounted: object[] = []

beforeEach(() => {
  vi.useFakeTimers()
  ;({ client, server } = createTestClient())
  client.on('error', () => undefined)
  box = document.createElement('main')
})
afterEach(async () => {
  for (const component of mounted.splice(0)) await unmount(component)
  vi.useRealTimers()
  vi.unstubAllGlobals()
})

async function show(source: string, withClient: WebMQClient | undefined = client) {
  const component = await compiled(source)
  mounted.push(mount(component, { target: box, props: { hooks, ...(withClient && { client: withClient }) } }))
  flushSync()
  await frame()
}

const frame = async () => {
  await vi.advanceTimersByTimeAsync(20)
  flushSync()
}
const verbs = () => server.received.map(({ verb }) => verb)

describe('stores of Svelte', () => {
  it('show messages and the status in a component, with runes', async () => {
    server.publish('chat.1', 1)
    await show(`
      hooks.provideClient(client)
      const chat = hooks.useMessages('chat.1')
      const status = hooks.useStatus()
      </script>{$status.state} {$chat.messages.map((m) => m.payload)}`)
    expect(box.textContent).toBe('connected 1')
    server.publish('chat.1', 2)
    await frame()
    expect(box.textContent).toBe('connected 1,2')
    for (const component of mounted.splice(0)) await unmount(component)
    await vi.advanceTimersByTimeAsync(1_100)
    expect(verbs()).toEqual(['listen', 'unlisten'])
  })

  it('follow a store of patterns', async () => {
    server.publish('a', 1)
    server.publish('b', 2)
    const pattern = writable<string | null>('a')
    const seen: unknown[] = []
    const end = useMessages(pattern, { client }).subscribe(({ messages }) => seen.push(messages.map((m) => m.payload)))
    await frame()
    pattern.set('b')
    await frame()
    pattern.set(null)
    expect(seen).toEqual([[], [1], [], [2], []])
    end()
    await vi.advanceTimersByTimeAsync(1_100)
    expect(server.patterns).toEqual([])
  })

  it('call handlers, enter, publish, and show the newest while mounted', async () => {
    const handled = vi.fn()
    vi.stubGlobal('handled', handled)
    await show(`
      hooks.provideClient(client)
      hooks.useTopic('a', (payload) => handled(payload))
      const publish = hooks.usePublish('a')
      const room = hooks.usePresence('room', { name: 'Ada' })
      const latest = hooks.useLatest('a')
      </script>
      <button onclick={() => publish(7)}></button>{$room.members.map((m) => m.data.name)} {$latest.latest.get('a')?.payload}`)
    box.querySelector('button')?.click()
    await frame()
    await frame()
    expect(box.textContent.trim()).toBe('Ada 7')
    for (const component of mounted.splice(0)) await unmount(component)
    server.publish('a', 8)
    await vi.advanceTimersByTimeAsync(1_100)
    expect(handled.mock.calls).toEqual([[7]])
    expect([server.presence.members('room'), server.patterns]).toEqual([[], []])
  })

  it('show a state', async () => {
    ;({ client, server } = createTestClient({ server: createTestServer({ retain: ['prices.#'] }) }))
    server.publish('prices.a', 1)
    const prices = useStateTopic('prices.*', { client })
    const seen: unknown[] = []
    const end = prices.subscribe(({ entries }) => seen.push([...entries.values()]))
    await frame()
    server.publish('prices.a', 2)
    await frame()
    expect(seen).toEqual([[], [1], [2]])
    end()
  })

  it('show a stream while it is written', async () => {
    const writer = await openStream('answer', { client: createTestClient({ server }).client })
    await writer.append('a')
    const seen: unknown[] = []
    const end = useStream('answer', { client }).subscribe(({ status, text }) => seen.push([status, text]))
    await frame()
    await Promise.all([writer.append('b'), writer.end()])
    await frame()
    expect(seen).toEqual([
      ['loading', ''],
      ['active', 'a'],
      ['end', 'ab'],
    ])
    end()
  })

  // Symptom: the type took a store, and the function published to a key that was an object.
  it('publish to the key of a store', async () => {
    const key = writable('a')
    const publish = usePublish(key, { client })
    await publish(1)
    key.set('b')
    await publish(2)
    const published = server.received.flatMap((message) => (message.verb === 'publish' ? [message.key] : []))
    expect(published).toEqual(['a', 'b'])
  })

  it('need no component with a client', async () => {
    expect(get(useStatus({ client })).state).toBe('idle')
    await usePublish('a', { client })(1)
    expect(verbs()).toEqual(['publish'])
  })

  it('have their initial value on a server, and open nothing', () => {
    vi.stubGlobal('document', undefined)
    expect(get(useMessages('a', { client }))).toMatchObject({ messages: [], isStale: true })
    expect(server.received).toEqual([])
  })
})
