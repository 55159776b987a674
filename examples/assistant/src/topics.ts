import type { Topic } from 'webmq-client'

/** A question with its answer, once that has ended. */
export interface Turn {
  readonly question: string
  readonly answer: string
  readonly isStopped: boolean
  /** The name of its stream. */
  readonly stream: string
}

export interface Question {
  readonly question: string
}

/** The name of the stream that has the answer. */
export interface Asked {
  readonly stream: string
}

declare module 'webmq-client' {
  interface Topics {
    'assistant.*.ask': Topic<{ message: Question; reply: Asked }>
    'assistant.*.answer': Topic<{ stream: { meta: Question } }>
    'assistant.*.turn': Turn
  }
}
