import { type Channel, connect } from 'amqplib'
import { onTestFinished } from 'vitest'

/** A service that speaks AMQP and knows nothing of WebMQ; until the test ends. */
export async function startBackend(url: string): Promise<Channel> {
  const model = await connect(url)
  onTestFinished(() => model.close())
  return await model.createChannel()
}
