import { invalid } from '../../core/options.js'
import type { StandardIssue, StandardSchema } from '../../core/topics/standard-schema.js'
import { WebMQError } from '../../protocol/errors.js'
import { Topic } from './topic.js'

/** Keys whose topics are remembered. More keys are looked up again. */
const MAX_KEYS = 1_000

/** Paths and texts of issues may come from others' messages. */
const MAX_DETAIL_LENGTH = 200

/** A payload that a schema has accepted. */
export interface Checked {
  readonly topic: Topic
  /** What the schema made of the payload. */
  readonly value: unknown
}

/** Finds the topics of a key, and checks payloads with their schemas. */
export class CheckedTopics {
  readonly #topics: readonly Topic[]
  readonly #byKey = new Map<string, readonly Topic[]>()

  /** @throws {WebMQError} `E_PATTERN_INVALID`; `E_OPTION_INVALID` if something is not a schema. */
  constructor(topics: { readonly [pattern: string]: StandardSchema }) {
    this.#topics = Object.entries(topics).map(([text, schema]) => {
      if (typeof schema?.['~standard']?.validate !== 'function')
        throw invalid(`topics: '${text}' has no Standard Schema`)
      return new Topic(text, schema)
    })
  }

  /**
   * Checks a payload with the schemas of the key's topics, in their order. The first one that accepts it decides.
   * @throws {WebMQError} `E_PAYLOAD_INVALID` with the place of the first issue; `cause` has all issues of that schema.
   * `E_KEY_INVALID` if no topic fits the key. `E_OPTION_INVALID` if a schema is asynchronous.
   */
  check(key: string, payload: unknown): Checked {
    const topics = this.#topicsOf(key)
    let refusal: WebMQError | undefined
    for (const topic of topics) {
      const result = validate(topic, payload)
      if (!result.issues) return { topic, value: result.value }
      refusal ??= refused(topic, result.issues)
    }
    throw refusal ?? new WebMQError('E_KEY_INVALID', { detail: `${key} is of no topic` })
  }

  /** The first topic of the key, without a check; `undefined` if none fits. */
  topicOf(key: string): Topic | undefined {
    return this.#topicsOf(key)[0]
  }

  #topicsOf(key: string): readonly Topic[] {
    let topics = this.#byKey.get(key)
    if (!topics) {
      if (this.#byKey.size >= MAX_KEYS) this.#byKey.clear()
      topics = this.#topics.filter((topic) => topic.paramsOf(key))
      this.#byKey.set(key, topics)
    }
    return topics
  }
}

function validate({ text, schema }: Topic, payload: unknown) {
  let result: ReturnType<StandardSchema['~standard']['validate']>
  try {
    result = schema['~standard'].validate(payload)
  } catch (cause) {
    throw new WebMQError('E_PAYLOAD_INVALID', { detail: `the schema of '${text}' has thrown`, cause })
  }
  if (!('then' in result)) return result
  // Awaiting it would change the order of messages, and a payload that the app changes meanwhile.
  result.then(undefined, () => undefined)
  throw invalid(`topics: the schema of '${text}' is asynchronous`)
}

function refused({ text }: Topic, issues: readonly StandardIssue[]): WebMQError {
  const [{ path = [], message } = { message: 'refused' }] = issues
  const place = path
    .map((segment) => (typeof segment === 'object' ? segment.key : segment))
    .map((key) => (typeof key === 'number' ? `[${key}]` : `.${String(key)}`))
    .join('')
  const detail = `payload${place}: ${message}`
  const short = detail.length > MAX_DETAIL_LENGTH ? `${detail.slice(0, MAX_DETAIL_LENGTH)}…` : detail
  return new WebMQError('E_PAYLOAD_INVALID', { detail: `${short} (topic '${text}')`, cause: issues })
}
