// @vitest-environment happy-dom
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { type App, createApp, createSSRApp, effectScope, nextTick, ref } from 'vue'
import { renderToString } from 'vue/server-renderer'
import { createTestClient, createTestServer, type TestServer } from '../../dev/testing/index.js'
import type { WebMQClient } from '../../index.js'
import { openStream } from '../../parts/stream/index.js'
import {
  clientKey,
  useLatest,
  useMessages,
  usePresence,
  usePublish,
  useStateTopic,
  useStatus,
  useStream,
  useTopic,
} from './index.js'

let client: WebMQClient
let server: TestServer
let box: HTMLElement
let app: App | undefined

beforeEach(() => {
  vi.useFakeTimers()
  ;({ client, server } = createTestClient())
  client.on('error', () => undefined)
  box = document.createElement('main')
})
afterEach(() => {
  app?.unmount()
  app = undefined
  vi.useRealTimers()
  vi.unstubAllGlobals()
})

async function mount(template: string, setup: () => object) {
  app = createApp({ template, setup })
  app.provide(clientKey, client)
  app.mount(box)
  await frame()
}

const frame = async () => {
  await vi.advanceTimersByTimeAsync(20)
  await nextTick()
}
const verbs = () => server.received.map(({ verb }) => verb)

describe('composables of Vue', () => {
  it('show the status', async () => {
    await mount('{{ state }}', () => useStatus())
    expect(box.textContent).toBe('idle')
    await client.connect()
    await nextTick()
    expect(box.textContent).toBe('connected')
  })

  it('show messages, once per frame, and follow their pattern', async () => {
    server.publish('chat.1', 1)
    server.publish('chat.2', 2)
    const room = ref<string | null>('chat.1')
    let renderCount = 0
    await mount('{{ rendered() }}{{ messages.map((m) => m.payload) }}{{ isStale ? " stale" : "" }}', () => ({
      ...useMessages(room),
      rendered: () => {
        renderCount++
      },
    }))
    expect(box.textContent).toBe('[1]'.replace('1', '\n  1\n'))
    const before = renderCount
    for (let n = 0; n < 50; n++) server.publish('chat.1', n)
    await frame()
    expect(renderCount - before).toBe(1)
    room.value = 'chat.2'
    await frame()
    expect(JSON.parse(box.textContent)).toEqual([2])
    room.value = null
    await frame()
    expect(box.textContent).toBe('[]')
    await vi.advanceTimersByTimeAsync(1_100)
    expect(verbs()).toEqual(['listen', 'listen', 'unlisten', 'unlisten'])
  })

  it('show a stream while it is written, and stop it', async () => {
    const writer = await openStream('answer', { client: createTestClient({ server }).client })
    await writer.append('a')
    let stop: () => Promise<void> = async () => undefined
    await mount('{{ status }} {{ text }}', () => {
      const stream = useStream('answer')
      stop = stream.stop
      return stream
    })
    expect(box.textContent).toBe('active a')
    await writer.append('b')
    await stop()
    await writer.end()
    await frame()
    expect([box.textContent, writer.signal.aborted]).toEqual(['stop ab', true])
  })

  it('load older messages', async () => {
    for (const payload of [1, 2]) server.publish('chat.1', payload)
    await mount('{{ messages.length }} {{ hasOlder }} <button @click="loadOlder" />', () =>
      useMessages('chat.1', { limit: 1, loadOlder: () => [{ key: 'chat.1', payload: 1, replayed: true }] }),
    )
    expect(box.textContent.trim()).toBe('1 true')
    box.querySelector('button')?.click()
    await frame()
    expect(box.textContent.trim()).toBe('2 true')
  })

  it('call handlers while mounted', async () => {
    const handled: unknown[] = []
    const pattern = ref<string | null>('a')
    await mount('topic', () => {
      useTopic(pattern, (payload) => handled.push(payload))
      return {}
    })
    server.publish('a', 1)
    pattern.value = 'b'
    await frame()
    server.publish('a', 2)
    server.publish('b', 3)
    await frame()
    app?.unmount()
    app = undefined
    server.publish('b', 4)
    await vi.advanceTimersByTimeAsync(1_100)
    expect(handled).toEqual([1, 3])
    expect(server.patterns).toEqual([])
  })

  it('show who is there, enter, and publish', async () => {
    const me = ref({ name: 'Ada' })
    let publish: (payload: unknown) => Promise<unknown> = async () => undefined
    await mount('{{ members.map((m) => m.data.name).join() }} {{ latest.get("a")?.payload }}', () => {
      publish = usePublish('a')
      return { ...usePresence<{ name: string }>('room', me), ...useLatest('a') }
    })
    await publish(7)
    me.value = { name: 'Bob' }
    await frame()
    await frame()
    expect(box.textContent).toBe('Bob 7')
    app?.unmount()
    app = undefined
    await vi.advanceTimersByTimeAsync(1_100)
    expect(server.presence.members('room')).toEqual([])
  })

  it('show a state', async () => {
    ;({ client, server } = createTestClient({ server: createTestServer({ retain: ['prices.#'] }) }))
    server.publish('prices.a', 1)
    await mount('{{ entries.get("prices.a") }} {{ isStale }}', () => useStateTopic('prices.*'))
    expect(box.textContent).toBe('1 false')
    server.publish('prices.a', 2)
    await frame()
    expect(box.textContent).toBe('2 false')
  })

  it('work in a scope without a component', async () => {
    const scope = effectScope()
    server.publish('a', 1)
    const instance = await import('../../core/default-instance.js')
    instance.setup({ url: server.url, WebSocket: server.WebSocket })
    const used = scope.run(() => useMessages('a'))
    await frame()
    expect(used?.messages.value).toMatchObject([{ payload: 1 }])
    scope.stop()
    await vi.advanceTimersByTimeAsync(1_100)
    expect(server.patterns).toEqual([])
    await instance.close()
  })

  it('render the same on a server, without a client, and continue from its HTML', async () => {
    server.publish('a', 1)
    const component = {
      template: '<p>{{ messages.length }} {{ isStale }} {{ state }}</p>',
      setup: () => {
        useTopic('a', () => undefined)
        usePresence('a', { name: 'Ada' })
        return { ...useMessages('a'), ...useLatest('b'), ...useMessages('a'), state: useStatus().state }
      },
    }
    vi.stubGlobal('document', undefined)
    const html = await renderToString(createSSRApp(component))
    vi.unstubAllGlobals()
    expect(html).toBe('<p>0 true idle</p>')
    expect(server.received).toEqual([])
    const warn = vi.spyOn(console, 'warn')
    box.innerHTML = html
    app = createSSRApp(component).provide(clientKey, client)
    app.mount(box)
    expect(box.textContent).toBe('0 true idle')
    await frame()
    expect(box.textContent).toBe('1 false connected')
    expect(warn).not.toHaveBeenCalled()
  })
})
