import { setup, WebMQError } from 'webmq-client'
import { respond } from 'webmq-client/parts'
import WebSocket from 'ws'
import { type Count, countPrimes, MAX_BELOW } from './src/primes'

setup({ url: process.env.WEBMQ_URL ?? 'ws://127.0.0.1:8080/ws', WebSocket })

respond('primes.count', (below): Count => {
  if (!(below <= MAX_BELOW)) throw new WebMQError('E_RESPONSE', { message: `at most ${MAX_BELOW}` })
  return { count: countPrimes(below), worker: process.pid }
})
