import { vi } from 'vitest'

/**
 * What our tests expect of RabbitMQ, of the model. Left out: tests of users, permissions and virtual hosts, of TLS, and of
 * files of the log that are damaged, because it has none of these.
 */
vi.mock('webmq-services', async (original) => {
  const { startModel } = await import('./service.js')
  const shared = startModel()
  return {
    ...(await original<typeof import('webmq-services')>()),
    sharedService: () => shared,
    startRabbitmq: startModel,
  }
})

await import('../../../../packages/server/test/brokers/rabbitmq-broker.test.js')
await import('../../../../packages/server/test/brokers/rabbitmq-log.test.js')
await import('../../../../packages/server/test/brokers/rabbitmq-bindings.test.js')
await import('../../../../packages/server/test/brokers/rabbitmq-interop.test.js')
// They mostly wait.
if (process.env.WEBMQ_TEST_RUNS !== undefined) {
  await import('../../../../packages/server/test/brokers/rabbitmq-operators.test.js')
  await import('../../../../packages/server/test/brokers/rabbitmq-faults.test.js')
  await import('../../../../packages/server/test/brokers/lost-end-rabbitmq.test.js')
}
