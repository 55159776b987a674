// @vitest-environment happy-dom
import { readFileSync } from 'node:fs'
import { QueryClient, QueryClientProvider } from '@tanstack/react-query'
import { act, createElement, type FunctionComponent, StrictMode } from 'react'
import { createRoot, type Root } from 'react-dom/client'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { createTestClient } from '../../src/dev/testing/index.js'
import { WebMQProvider } from '../../src/frameworks/react/index.js'
import { useOrders, useTrades } from './recipe.js'

let root: Root
let box: HTMLElement
let { client, server } = createTestClient()

beforeEach(() => {
  vi.useFakeTimers()
  vi.stubGlobal('IS_REACT_ACT_ENVIRONMENT', true)
  ;({ client, server } = createTestClient())
  box = document.createElement('main')
  root = createRoot(box)
})
afterEach(async () => {
  await act(() => root.unmount())
  vi.useRealTimers()
  vi.unstubAllGlobals()
})

async function show(component: FunctionComponent) {
  const page = createElement(QueryClientProvider, { client: new QueryClient() }, createElement(component))
  await act(() => root.render(createElement(StrictMode, undefined, createElement(WebMQProvider, { client }, page))))
  await wait()
}
const wait = (ms = 50) => act(() => vi.advanceTimersByTimeAsync(ms))

/** What the API has: it changes with the messages. */
let orders: { readonly id: number; readonly total: number }[] = []
let fetchCount = 0
async function fetchOrders() {
  fetchCount++
  const now = orders
  await new Promise((resolve) => setTimeout(resolve, 10))
  return now
}
function Orders() {
  return useOrders(fetchOrders)
    .data?.map(({ id, total }) => `${id}: ${total}`)
    .join()
}
function Trades() {
  return useTrades().data?.join()
}

it('orders come from the API, messages change them, and a gap fetches again', async () => {
  orders = [{ id: 1, total: 5 }]
  await show(Orders)
  expect(box.textContent).toBe('1: 5')
  const before = fetchCount
  server.publish('orders.2', { id: 2, total: 7 })
  await wait()
  expect(box.textContent).toBe('1: 5,2: 7')
  expect(fetchCount).toBe(before)
  orders = [{ id: 1, total: 6 }]
  server.gap('orders.*')
  server.publish('orders.3', { id: 3, total: 9 })
  await wait()
  expect(box.textContent).toBe('1: 6,3: 9')
  expect(fetchCount).toBe(before + 1)
})

it('trades are those of the log, then live ones, and a gap reads the log again', async () => {
  for (const trade of [1, 2]) server.publish('trades.a', trade)
  await show(Trades)
  server.publish('trades.b', 3)
  await wait()
  expect(box.textContent).toBe('1,2,3')
  server.gap('trades.*')
  await wait()
  server.publish('trades.a', 4)
  await wait()
  expect(box.textContent).toBe('1,2,3,4')
})

it('the page shows this recipe', () => {
  const read = (file: string) => readFileSync(new URL(file, import.meta.url), 'utf8')
  const recipe = read('recipe.ts').replaceAll(
    /'\.\.\/\.\.\/src\/(?:frameworks\/)?(\w+)\/index\.js'/g,
    "'webmq-client/$1'",
  )
  expect(read('../../../../docs/client/tanstack-query.md')).toContain(recipe)
})
