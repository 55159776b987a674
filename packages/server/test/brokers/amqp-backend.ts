import { type Channel, connect } from 'amqplib'
import { onTestFinished } from 'vitest'

/** An AMQP connection of a program without WebMQ. It ends with the test. */
export async function startBackend(url: string): Promise<Channel> {
  const model = await connect(url)
  onTestFinished(() => model.close())
  return await model.createChannel()
}
