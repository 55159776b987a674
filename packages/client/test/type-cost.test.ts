import { expect, it } from 'vitest'
import { compile } from './compile.js'

/**
 * Of 200 calls over 100 topics; it was 690,548 when each call looked at all topics. That JSON has no dates costs about 13,000.
 * Time depends on the machine.
 */
const MAX_INSTANTIATIONS = 260_000
const TOPIC_COUNT = 100

/** Patterns with common beginnings, common ends, names, and of one word. */
const KINDS = ['app.area%.*.changed', 'app.area%.#', 'room%.{room}.message', 'user.*.area%', 'flat%']

/** An app that listens and publishes to each of its topics. */
function appOf(topicCount: number): string {
  const topics = Array.from(
    { length: topicCount },
    (_, index) => KINDS[index % KINDS.length]?.replace('%', `${index}`) ?? '',
  )
  return [
    "import type { WebMQClient } from 'webmq-client'",
    'interface App {',
    ...topics.map((topic, index) => `  '${topic}': { n${index}: number; text: string }`),
    '}',
    'declare const client: WebMQClient<App>',
    'declare const id: string',
    ...topics.flatMap((topic, index) => [
      `client.listen('${topic.replace('{room}', '*')}', ({ text }, { key }) => [text, key])`,
      `void client.publish(\`${topic.replace(/\*|\{room\}/, `$\{id}`).replace('#', 'x.y')}\`, { n${index}: 1, text: '' })`,
    ]),
    "client.listen('#', ({ text }) => text)",
    '// @ts-expect-error it is of no topic',
    "client.listen('none.*', () => 1)",
  ].join('\n')
}

it('type-checks an app of 100 topics with few instantiations', () => {
  const { errors, instantiations, cpuMs } = compile(appOf(TOPIC_COUNT))
  console.info(`${TOPIC_COUNT} topics, 200 calls: ${instantiations} instantiations, ${Math.round(cpuMs)} ms of CPU`)
  expect(errors).toEqual([])
  expect(instantiations).toBeGreaterThan(10_000)
  expect(instantiations).toBeLessThan(MAX_INSTANTIATIONS)
})
