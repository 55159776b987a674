import { expect, it } from 'vitest'
import { sharedService } from 'webmq-services'
import { rollingRestart } from './restart.js'

// `node scripts/rolling-restart.mjs` does the same with more clients, and plots it.
it('three nodes behind HAProxy that are restarted one after the other lose no message, and no listener hears of a gap', {
  timeout: 60_000,
}, async () => {
  const { url: broker } = await sharedService('redis')
  const clientCount = 30
  const result = await rollingRestart({
    nodeCount: 3,
    clientCount,
    publishesPerSecond: 50,
    restMs: 300,
    server: {
      broker,
      brokerNamespace: `rolling-${process.pid}`,
      history: ['#=10000'],
      insecure: true,
      // Longer than two checks of the balancer.
      drainDelayMs: 600,
      drainPerSecond: 30,
    },
  })
  console.log(`rolling restart: ${JSON.stringify(result)}`)
  expect(result).toMatchObject({ failedPublishCount: 0, lostCount: 0, misplacedCount: 0, gapCount: 0 })
  expect(result.publishedCount).toBeGreaterThan(100)
  // Each client was moved at least once.
  expect(result.reconnectCount).toBeGreaterThanOrEqual(clientCount)
})
