package dev.hummock.example;

import dev.hummock.client.BlockingHummockClient;
import dev.hummock.client.ClientOptions;
import dev.hummock.client.LlmMessage;
import dev.hummock.v1.ContextServiceGrpc;
import dev.hummock.v1.ListMemoriesRequest;
import dev.hummock.v1.MemoryServiceGrpc;
import dev.hummock.v1.RecallRequest;
import dev.hummock.v1.WatchMemoriesRequest;
import java.time.Duration;
import java.util.List;

/** Runs what the documentation shows in Java, against the service at HUMMOCK_TARGET. A test compares the texts. */
public final class JavaSnippets {
    private JavaSnippets() {}

    /** Runs all of them. */
    public static void main(String[] arguments) throws Exception {
        fiveLines();
        try (var client = new BlockingHummockClient(null, new ClientOptions().withToken(""))) {
            later(client);
            stubs(client);
            prompt(client);
        }
        System.exit(0);
    }

    private static void fiveLines() {
        try (var client = new BlockingHummockClient()) {
            client.note("loan", "先本后息：先还本金，后还利息", "还款");
            var recalled = client.recall("loan", "增加先本后息的还款方式");
            recalled.getHitsList().forEach(hit -> System.out.println(hit.getScore() + " " + hit.getMemory().getTitle()));
        }
    }

    private static void later(BlockingHummockClient client) throws Exception {
        var request = RecallRequest.newBuilder().setProject("loan").setQueryText("还款").build();
        var later = client.sendAsync(ContextServiceGrpc.getRecallMethod(), request, Duration.ofSeconds(2));
        later.thenAccept(reply -> System.out.println(reply.getHitsCount() + " hits")).get();
    }

    private static void stubs(BlockingHummockClient client) throws Exception {
        var memories = client.stub(MemoryServiceGrpc::newFutureStub);
        var listed = memories.listMemories(ListMemoriesRequest.newBuilder().setProject("loan").build());
        System.out.println(listed.get().getMemoriesCount() + " memories");
        var watch = WatchMemoriesRequest.newBuilder().setProject("loan").setAfterSeq(0).build();
        try (var replies = client.stream(MemoryServiceGrpc.getWatchMemoriesMethod(), watch)) {
            replies.takeWhile(reply -> !reply.getCaughtUp()).forEach(System.out::println);
        }
    }

    private static void prompt(BlockingHummockClient client) throws Exception {
        var messages = List.of(LlmMessage.system("You are patient."), LlmMessage.user("When is the plan paid?"));
        var sent = client.withMemory("loan", messages);
        System.out.println(sent.size() + " messages");
    }
}
