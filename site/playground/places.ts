interface Place {
  readonly file: string
  /** The section at whose end it is; absent: what comes before the first one. */
  readonly heading?: string
  /** It is a section of its own with this title, before all text of the page. */
  readonly title?: string
  /** Absent: all examples, and the code of links. */
  readonly example?: string
}

/** The pages with a playground. Their files have nothing of it, as GitHub would show that. */
export const PLAYGROUNDS: readonly Place[] = [
  { file: 'site/playground.md' },
  { file: 'README.md', title: 'Cut the network yourself', example: 'recovered' },
  { file: 'packages/client/README.md', heading: 'Loading', example: 'loaded' },
  { file: 'docs/guarantees.md', example: 'gap' },
  { file: 'docs/presence.md', heading: 'Use it', example: 'presence' },
  { file: 'docs/streams.md', heading: 'In 60 seconds', example: 'streams' },
  { file: 'docs/client/concurrency.md', example: 'concurrency' },
  { file: 'docs/client/history.md', example: 'history' },
  { file: 'docs/client/latest.md', example: 'latest' },
  { file: 'docs/client/meta.md', heading: 'Who published a message, and when', example: 'meta' },
  { file: 'docs/client/requests.md', heading: 'Ask, and answer', example: 'requests' },
  { file: 'docs/client/state.md', example: 'state' },
]
