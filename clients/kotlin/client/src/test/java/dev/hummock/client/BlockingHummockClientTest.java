package dev.hummock.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;

import dev.hummock.v1.ContextServiceGrpc;
import dev.hummock.v1.RecallRequest;
import dev.hummock.v1.RenderRequest;
import io.grpc.Status;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CancellationException;
import java.util.concurrent.ExecutionException;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** The facade as Java sees it. */
@Timeout(60)
class BlockingHummockClientTest {
    private static final RecallRequest WRONG = RecallRequest.newBuilder().setQueryText("wrong").build();

    private final Service service = new Service();
    private final BlockingHummockClient client =
            new BlockingHummockClient(service.getTarget(), new ClientOptions().withToken("s3cret"));

    @AfterEach
    void close() {
        client.close();
        service.close();
    }

    @Test
    @DisplayName("calls block, and writes are repeated")
    void callsBlock() {
        assertEquals(7, client.note("p", "a sentence", "tag").getSeq());
        assertEquals(3, client.recall("p", "q").getSeq());
    }

    @Test
    @DisplayName("what fails is the one exception, blocking or later")
    void whatFailsIsTheOneException() {
        var thrown = assertThrows(HummockException.class, () -> client.recall(WRONG));
        assertEquals(Status.Code.INVALID_ARGUMENT, thrown.getCode());
        assertEquals("query_text", thrown.getFieldViolations().get(0).getField());
        var later = client.sendAsync(ContextServiceGrpc.getRecallMethod(), WRONG);
        var failed = assertThrows(ExecutionException.class, later::get);
        assertEquals("INVALID_REQUEST", assertInstanceOf(HummockException.class, failed.getCause()).getReason());
    }

    @Test
    @DisplayName("a call comes later, and can be cancelled")
    void aCallComesLater() throws Exception {
        var recalled = client.sendAsync(ContextServiceGrpc.getRecallMethod(), RecallRequest.getDefaultInstance());
        assertEquals(3, recalled.get().getSeq());
        var slow = RenderRequest.newBuilder().setProject("slow").build();
        var waiting = client.sendAsync(ContextServiceGrpc.getRenderMethod(), slow);
        waiting.cancel(true);
        assertThrows(CancellationException.class, waiting::get);
    }

    @Test
    @DisplayName("generated stubs are under the client's rules, and their exception can be told")
    void generatedStubs() {
        var stub = client.stub(ContextServiceGrpc::newBlockingStub);
        assertEquals(3, stub.recall(RecallRequest.getDefaultInstance()).getSeq());
        var thrown = assertThrows(io.grpc.StatusRuntimeException.class, () -> stub.recall(WRONG));
        assertEquals("INVALID_REQUEST", HummockException.of(thrown).getReason());
    }

    @Test
    @DisplayName("memory goes into the prompt, or leaves it alone")
    void memoryFailsOpen() throws Exception {
        var said = List.of(LlmMessage.user("when?"));
        var patient = new MemoryOptions().withBudget(Duration.ofSeconds(20));
        assertEquals(LlmMessage.system("a memory"), client.withMemory("p", said, patient).get(0));
        assertSame(said, client.withMemory("broken", said, patient));
    }
}
