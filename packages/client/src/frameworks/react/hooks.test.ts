// @vitest-environment happy-dom
import { act, createElement, type ReactElement, StrictMode, Suspense } from 'react'
import { createRoot, hydrateRoot, type Root } from 'react-dom/client'
import { renderToString } from 'react-dom/server'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { createTestClient, createTestServer, type TestServer } from '../../dev/testing/index.js'
import { setup, type WebMQClient } from '../../index.js'
import { openStream } from '../../parts/stream/index.js'
import {
  createHooks,
  type Hooks,
  type ListedMessage,
  type TopicOptions,
  type UseStatus,
  useLatest,
  useMessages,
  usePresence,
  usePublish,
  useStateTopic,
  useStatus,
  useStream,
  useTopic,
  WebMQProvider,
} from './index.js'

let client: WebMQClient
let server: TestServer
let box: HTMLElement
let root: Root

beforeEach(() => {
  vi.useFakeTimers()
  vi.stubGlobal('IS_REACT_ACT_ENVIRONMENT', true)
  ;({ client, server } = createTestClient())
  client.on('error', () => undefined)
  box = document.createElement('main')
  root = createRoot(box)
})

afterEach(async () => {
  await act(() => root.unmount())
  vi.useRealTimers()
  vi.unstubAllGlobals()
})

function Status() {
  return useStatus().state
}
const Nothing = () => null
const handled: unknown[] = []
let pattern: string | null = 'a'
let options: TopicOptions = {}
function Topic() {
  useTopic(pattern, (payload) => handled.push(payload), options)
  return null
}
const rendered: string[] = []
function List() {
  const { messages, isStale, error } = useMessages(pattern, { limit: 3 })
  const text = `${messages.map(({ payload }) => payload)}${isStale ? ' stale' : ''}${error ? ` ${error}` : ''}`
  rendered.push(text)
  return text
}
function Suspending() {
  const { messages, isStale } = useMessages(pattern, { limit: 3, suspense: true })
  return `${messages.map(({ payload }) => payload)}${isStale ? ' stale' : ''}`
}
const suspending = () => createElement(Suspense, { fallback: 'loading' }, createElement(Suspending))
let slow: Promise<void> | undefined
function Slow() {
  if (slow) throw slow
  return ' and slow'
}
let renderCount = 0
function Prices() {
  renderCount++
  const { latest, isStale } = useLatest('prices.*')
  return `${[...latest].map(([key, { payload }]) => `${key}=${payload}`)}${isStale ? ' stale' : ''}`
}
let me: { name: string } | undefined = { name: 'Ada' }
function Room() {
  return usePresence<{ name: string }>('room.1', me)
    .members.map(({ data }) => data?.name)
    .join()
}
let publish: (payload: unknown) => Promise<unknown> = async () => undefined
let shown: readonly ListedMessage<unknown>[] = []
function Chat() {
  publish = usePublish('chat.1', { optimistic: true })
  shown = useMessages('chat.1').messages
  return shown.map(({ payload, sending }) => `${payload} ${sending?.state ?? 'here'}`).join()
}
function States() {
  const { entries, isStale } = useStateTopic('prices.*')
  return `${[...entries].map(([key, payload]) => `${key}=${payload}`)}${isStale ? ' stale' : ''}`
}
let stop: () => Promise<void> = async () => undefined
function Answer() {
  renderCount++
  const { text, status, meta, result, stop: stopIt } = useStream(pattern)
  stop = stopIt
  return `${status} ${text} ${JSON.stringify([meta, result])}`
}
let useOther = useStatus as UseStatus
let useOthers: Hooks = createHooks()
function Selected() {
  renderCount++
  return [useStatus(({ lost }) => lost), useOther(({ state }) => state), useOthers.useStatus().state].join()
}
function Page() {
  useStream('a')
  usePublish('a')
  usePresence('a', { name: 'Ada' })
  useLatest('a')
  useStateTopic('a')
  useTopic('a', () => undefined)
  return `${useStatus().state} ${useMessages('a', { suspense: true }).isStale}`
}
/** Renders a component with the client, in StrictMode. */
async function render(component: () => ReactElement | string | null) {
  await act(() => root.render(inClient(component)))
  await frame()
}

const inClient = (component: () => ReactElement | string | null) =>
  createElement(StrictMode, undefined, createElement(WebMQProvider, { client }, createElement(component)))

const frame = () => act(() => vi.advanceTimersByTimeAsync(20))
const wait = (ms: number) => act(() => vi.advanceTimersByTimeAsync(ms))
const verbs = () => server.received.map(({ verb }) => verb)

describe('useStream', () => {
  it('shows a stream while it is written, once per frame, and stops it', async () => {
    pattern = 'answer'
    const writer = await openStream('answer', { client: createTestClient({ server }).client, meta: 1 })
    await render(Answer)
    expect(box.textContent).toBe('active  [1,null]')
    renderCount = 0
    for (const text of ['a', 'b', 'c']) await act(() => writer.append(text))
    await frame()
    expect([box.textContent, renderCount]).toEqual(['active abc [1,null]', 2])
    await act(() => stop())
    expect(writer.signal.aborted).toBe(true)
    await act(() => writer.end(2))
    await frame()
    expect(box.textContent).toBe('stop abc [1,null]')
    pattern = null
    await render(Answer)
    expect(box.textContent).toBe('none  [null,null]')
    pattern = 'a'
  })
})

describe('useStatus', () => {
  it('shows the state, and connects nobody', async () => {
    await render(Status)
    expect(box.textContent).toBe('idle')
    await act(() => client.connect())
    expect(box.textContent).toBe('connected')
    server.isUp = false
    server.drop()
    await wait(6_000)
    expect(box.textContent).toBe('reconnecting')
  })

  it('works without a provider, and moves to the client of another setup', async () => {
    setup({ url: server.url, WebSocket: server.WebSocket })
    await act(() => root.render(createElement(Status)))
    expect(box.textContent).toBe('idle')
    const next = setup({ url: server.url, WebSocket: server.WebSocket })
    await wait(2_000)
    await act(() => next.connect())
    expect(box.textContent).toBe('connected')
    await act(() => next.close())
  })
})

describe('useTopic', () => {
  beforeEach(() => {
    handled.length = 0
    pattern = 'a'
    options = {}
  })

  it('listens once in StrictMode, and replays once', async () => {
    server.publish('a', 1)
    options = { last: 5 }
    await render(Topic)
    server.publish('a', 2)
    await frame()
    expect([handled, verbs()]).toEqual([[1, 2], ['listen']])
  })

  it('handles nothing once unmounted, and ends the listen after the grace', async () => {
    await render(Topic)
    await render(Nothing)
    server.publish('a', 1)
    await wait(500)
    await render(Topic)
    server.publish('a', 2)
    await frame()
    expect([handled, verbs()]).toEqual([[2], ['listen']])
    await render(Nothing)
    await wait(1_100)
    expect(verbs()).toEqual(['listen', 'unlisten'])
  })

  it('follows its pattern, and pauses with null', async () => {
    for (pattern of ['a', 'b', null]) {
      await act(() => root.render(inClient(Topic)))
      await frame()
      for (const key of ['a', 'b']) server.publish(key, `${key} at ${pattern}`)
      await frame()
    }
    expect(handled).toEqual(['a at a', 'b at b'])
  })
})

describe('useMessages', () => {
  beforeEach(() => {
    rendered.length = 0
    pattern = 'chat.1'
  })

  it('renders once per frame, and loads again after a gap', async () => {
    for (const n of [1, 2]) server.publish('chat.1', n)
    await render(List)
    for (let n = 3; n < 50; n++) server.publish('chat.1', n)
    await frame()
    // StrictMode renders twice.
    expect(rendered).toEqual([' stale', ' stale', '1,2', '1,2', '47,48,49', '47,48,49'])
    server.gap('chat.1')
    await frame()
    expect(box.textContent).toBe('47,48,49')
    expect(verbs()).toEqual(['listen', 'listen'])
  })

  it('shows the list of another pattern, and never that of the last', async () => {
    server.publish('chat.1', 1)
    server.publish('chat.2', 2)
    await render(List)
    pattern = 'chat.2'
    await act(() => root.render(inClient(List)))
    await frame()
    expect(new Set(rendered)).toEqual(new Set([' stale', '1', '2']))
    expect(box.textContent).toBe('2')
  })

  it('shows an error', async () => {
    server.revoke('chat.1')
    await render(List)
    expect(box.textContent).toContain('stale WebMQError')
  })

  it('suspends until the first messages are here, and listens once', async () => {
    server.publish('chat.1', 1)
    await act(() => root.render(inClient(suspending)))
    expect(box.textContent).toBe('loading')
    await frame()
    expect(box.textContent).toBe('1')
    server.publish('chat.1', 2)
    await wait(3_000)
    expect(box.textContent).toBe('1,2')
    expect(verbs()).toEqual(['listen'])
  })

  // Symptom: a list that had loaded was closed after a second, and the component waited again, perhaps for ever.
  it('keeps what it has loaded while others of the page still load', async () => {
    server.publish('chat.1', 1)
    slow = new Promise<void>((resolve) => setTimeout(resolve, 3_000)).then(() => {
      slow = undefined
    })
    const both = () => createElement(Suspense, { fallback: 'loading' }, createElement(Suspending), createElement(Slow))
    await act(() => root.render(inClient(both)))
    await wait(2_900)
    expect(box.textContent).toBe('loading')
    await wait(200)
    expect(box.textContent).toBe('1 and slow')
    await wait(20_000)
    expect(verbs()).toEqual(['listen'])
    await act(() => root.render(inClient(Nothing)))
    await wait(20_000)
    expect(verbs()).toEqual(['listen', 'unlisten'])
  })

  // Symptom: a rejection that nobody handled, and the same error for ever, also after `setup`.
  it('throws what is wrong with a suspending list at once', async () => {
    pattern = 'a b'
    vi.spyOn(console, 'error').mockReturnValue()
    const unhandled = vi.fn()
    process.on('unhandledRejection', unhandled)
    const rendered = (async () => act(() => root.render(inClient(suspending))))()
    await expect(rendered).rejects.toMatchObject({ code: 'E_PATTERN_INVALID' })
    await wait(100)
    process.off('unhandledRejection', unhandled)
    expect(unhandled).not.toHaveBeenCalled()
  })

  it.each([
    ['plain', List],
    ['suspending', suspending],
  ])('renders the same on the server, without a connection, and continues from its HTML: %s', async (_, component) => {
    server.publish('chat.1', 1)
    const html = renderToString(inClient(component))
    expect([html.replaceAll(/<[^>]+>/g, ''), server.received]).toEqual([' stale', []])
    const page = document.createElement('main')
    page.innerHTML = html
    const onRecoverableError = vi.fn()
    const hydrated = await act(() => hydrateRoot(page, inClient(component), { onRecoverableError }))
    await frame()
    expect(page.textContent).toBe('1')
    expect(onRecoverableError).not.toHaveBeenCalled()
    await act(() => hydrated.unmount())
  })
})

describe('useLatest', () => {
  it('shows the newest message of each key', async () => {
    await render(Prices)
    const before = renderCount
    for (let n = 0; n < 100; n++) server.publish(`prices.${n % 2}`, n)
    await frame()
    expect(box.textContent).toBe('prices.0=98,prices.1=99')
    expect(renderCount - before).toBe(2)
  })
})

describe('useStatus', () => {
  it('renders when what it selects has changed, of the client that it is bound to', async () => {
    const { client: other } = createTestClient()
    useOther = useStatus.of(other)
    useOthers = createHooks(other)
    await act(() => client.connect())
    await render(Selected)
    expect(box.textContent).toBe('false,idle,idle')
    renderCount = 0
    let changeCount = 0
    client.on('status', () => changeCount++)
    await act(() => server.drop())
    client.publish('a', 1).catch(() => undefined)
    await act(() => vi.advanceTimersByTimeAsync(0))
    expect(client.status.queueLength).toBe(1)
    expect([changeCount > 1, renderCount]).toEqual([true, 0])
    await act(() => client.close({ flushMs: 0 }))
    await act(() => other.connect())
    expect(box.textContent).toBe('false,connected,connected')
  })
})

describe('useStateTopic', () => {
  it('shows the last message of each key, and what is removed', async () => {
    ;({ client, server } = createTestClient({ server: createTestServer({ retain: ['prices.#'] }) }))
    for (const key of ['a', 'b']) server.publish(`prices.${key}`, 1)
    await render(States)
    expect(box.textContent).toBe('prices.a=1,prices.b=1')
    server.publish('prices.a', 2)
    server.remove('prices.b')
    await frame()
    expect(box.textContent).toBe('prices.a=2')
    expect(verbs()).toEqual(['listen'])
    await render(Nothing)
    await wait(1_100)
    expect(server.patterns).toEqual([])
  })
})

describe('usePresence', () => {
  it('shows who is there, and enters once while mounted', async () => {
    server.presence.enter('room.1', undefined, { id: 'x', data: { name: 'Bob' } })
    await render(Room)
    expect(box.textContent).toBe('Bob,Ada')
    me = { name: 'Ada L.' }
    await act(() => root.render(inClient(Room)))
    await frame()
    expect(box.textContent).toBe('Bob,Ada L.')
    const enters = server.received.filter((message) => message.verb === 'presence' && message.op === 'enter')
    expect(enters).toHaveLength(2)
    await render(Nothing)
    await wait(1_100)
    expect(server.presence.members('room.1')).toHaveLength(1)
  })
})

describe('usePublish', () => {
  it('shows a message at once, then confirmed or failed, and retries with the same id', async () => {
    await render(Chat)
    server.refuse('publish', 'E_FORBIDDEN')
    void publish('hi').catch(() => undefined)
    await wait(0)
    await frame()
    expect(box.textContent).toBe('hi failed')
    shown[0]?.sending?.retry()
    await frame()
    expect(box.textContent).toBe('hi here')
    const ids = server.received.flatMap((message) => (message.verb === 'publish' ? [message.messageId] : []))
    expect(ids).toHaveLength(2)
    expect(new Set(ids).size).toBe(1)
  })
})

describe('on a server', () => {
  it('needs no client', () => {
    expect(renderToString(createElement(Page))).toBe('idle true')
  })
})
