import type { Topic } from 'webmq-client'

/** What goes over the wire. The hooks take the types of keys and payloads from here. */
declare module 'webmq-client' {
  interface Topics {
    'chat.*.message': { readonly from: string; readonly text: string; readonly atMs: number }
    'chat.*.typing': { readonly from: string }
    'chat.*': Topic<{ presence: { readonly name: string } }>
  }
}
