import type { AddressInfo } from 'node:net'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { WebSocket, WebSocketServer } from 'ws'
import { Link } from './link.js'

const WAIT = { timeout: 5_000, interval: 5 }
let server: WebSocketServer
let heard: string[]

beforeEach(async () => {
  heard = []
  server = new WebSocketServer({ port: 0, host: '127.0.0.1' })
  await new Promise((resolve) => server.once('listening', resolve))
  server.on('connection', (socket) => {
    socket.on('error', () => undefined) // A reset.
    socket.on('message', (data) => heard.push(String(data)))
  })
})
afterEach(async () => {
  for (const socket of server.clients) socket.terminate()
  await new Promise((resolve) => server.close(resolve))
})

function connect(link: Link) {
  const socket = new WebSocket(`ws://127.0.0.1:${(server.address() as AddressInfo).port}`, { agent: link })
  const got: string[] = []
  let error: NodeJS.ErrnoException | undefined
  socket.on('message', (data) => got.push(String(data)))
  socket.on('error', (cause) => {
    error = cause
  })
  const opened = new Promise<boolean>((resolve) => {
    socket.once('open', () => resolve(true))
    socket.once('close', () => resolve(false))
  })
  return { socket, got, opened, errorCode: () => error?.code }
}

it('ends the connection at once, refuses others meanwhile, and makes them again when it is mended', async () => {
  const lost = vi.fn()
  const link = new Link(lost)
  const first = connect(link)
  expect(await first.opened).toBe(true)
  link.drop('noticed')
  await vi.waitFor(() => expect(first.socket.readyState).toBe(WebSocket.CLOSED), WAIT)
  expect(lost).toHaveBeenCalledTimes(1)
  const second = connect(link)
  expect(await second.opened).toBe(false)
  expect(second.errorCode()).toBe('ECONNREFUSED')
  link.mend()
  const third = connect(link)
  expect(await third.opened).toBe(true)
  third.socket.terminate()
})

it('lets nothing through in silence, and ends the connection when it is mended', async () => {
  const lost = vi.fn()
  const link = new Link(lost)
  const { socket, got, opened } = connect(link)
  expect(await opened).toBe(true)
  const [peer] = server.clients
  peer?.send('before')
  socket.send('before')
  await vi.waitFor(() => expect([got, heard]).toEqual([['before'], ['before']]), WAIT)
  link.drop('silent')
  const sent = vi.fn()
  socket.send('meanwhile', sent)
  // The kernel has taken it: for the server it is sent.
  await new Promise<void>((resolve) => peer?.send('meanwhile', () => resolve()))
  await vi.waitFor(() => expect(sent).toHaveBeenCalled(), WAIT)
  expect([socket.readyState, lost.mock.calls]).toEqual([WebSocket.OPEN, []])
  link.mend()
  await vi.waitFor(() => expect(socket.readyState).toBe(WebSocket.CLOSED), WAIT)
  await vi.waitFor(() => expect(server.clients.size).toBe(0), WAIT)
  expect([got, heard]).toEqual([['before'], ['before']])
  expect(lost).toHaveBeenCalledTimes(1)
})
