import { createServer } from 'node:http'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { NativeHttp } from './http.js'

// Symptom: `/health` took 1.7 s, and an orchestrator gives up after one. Cause: it waited behind a thousand connections.
it('lets a probe wait for no other connection', async () => {
  const taken: number[] = []
  const failed = (error: unknown) => expect.unreachable(String(error))
  const http = new NativeHttp({ server: createServer(), probePaths: ['/health', '/ready'] }, takeSocket, failed)
  function takeSocket(token: number): number {
    taken.push(token)
    return -1
  }
  const serve = (token: number, head: string) => http.serve(token, undefined, Buffer.from(`${head} HTTP/1.1\r\n\r\n`))
  for (let token = 1; token <= 50; token++) serve(token, token % 2 === 0 ? 'GET /healthy' : 'POST /health')
  const before = taken.length
  serve(51, 'GET /health')
  serve(52, 'GET /ready')
  expect(taken.slice(before)).toEqual([51, 52])
  while (taken.length < 52) await nextTurn()
  expect(taken.filter((token) => token <= 50)).toEqual(Array.from({ length: 50 }, (_, index) => index + 1))
})
